// What a worker process does when a fatal signal ends it, and before its time is over.
#pragma once

namespace lev::python {

// The signal that faulthandler answers with the traceback of a call whose time is nearly over.
int overrun_signal() noexcept;

}  // namespace lev::python
