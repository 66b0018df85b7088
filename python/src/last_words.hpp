// What a worker process does when a fatal signal ends it, and before its time is over.
#ifndef LEVERET_PYTHON_LAST_WORDS_HPP
#define LEVERET_PYTHON_LAST_WORDS_HPP

namespace lev::python {

// The signal that faulthandler answers with the traceback of a call whose time is nearly over.
int overrun_signal() noexcept;

}  // namespace lev::python

#endif
