// Replies of Python calls as python/leveret/wire/pickling.py describes them, for those that are
// small and plain: a pickle without buffers. The others are written and read in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace nb = nanobind;

namespace lev::python {

// plain_reply() gives (kind, pickle, nanoseconds, bytes) of a plain reply that is as it was
// written; a null handle for any other, of which Python finds out what it is.
nb::object plain_reply(const char* place, std::size_t bytes);

// write_plain_reply() writes one, and returns its size; or 0: there is no room for it.
std::size_t write_plain_reply(char* place, std::size_t room, unsigned kind, const char* pickled,
                              std::size_t bytes, long long ns);

}  // namespace lev::python
