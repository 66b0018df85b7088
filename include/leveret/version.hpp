// The version of the headers that a program is compiled with, and the language that they need.
// `lev::version()` returns the version of the library it runs with.
#ifndef LEVERET_VERSION_HPP
#define LEVERET_VERSION_HPP

#if __cplusplus <= 201703L
#error "Leveret needs C++20: compile with -std=c++20"
#endif

#define LEV_VERSION_MAJOR 0
#define LEV_VERSION_MINOR 1
#define LEV_VERSION_PATCH 0

namespace lev {

// version() returns "major.minor.patch" of the library. Thread safe, never null.
const char* version() noexcept;

}  // namespace lev

#endif
