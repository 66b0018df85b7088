// What a worker process of a Python host runs: the program it is forked from, and Python functions.
#pragma once

#include <leveret/leveret.hpp>

namespace lev::python {

// A Python call as a task: what its arguments are, in order; up to call_buffers_max more are memory
// that the function's arguments refer to, kind::in.
enum call_argument : unsigned {
  call_setup = 0,
  call_request = 1,
  call_reply = 2,
  call_buffers = 3
};
constexpr unsigned call_buffers_max = argument_count_max - call_buffers;

// python_call() is the procedure that runs Python functions in worker processes, for a number of
// buffers. `may_rerun`: see procedure_info.
procedure_id python_call(unsigned buffers, bool may_rerun);

}  // namespace lev::python
