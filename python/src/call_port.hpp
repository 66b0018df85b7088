// call_port: Python calls on their way to worker processes and back, for leveret.ProcessExecutor.
//
// A call is a task of the procedure python_call(). Whoever completes it, mostly without the GIL,
// puts it into the list of finished calls; the first one there takes the GIL and delivers the list,
// and others go on. A thread that is in submit() leaves that to its caller: see drain().
#ifndef LEVERET_PYTHON_CALL_PORT_HPP
#define LEVERET_PYTHON_CALL_PORT_HPP

#include <atomic>
#include <string>
#include <vector>

#include "runtime_object.hpp"

namespace lev::python {

class call_port;

// One call. All but `outcome`, `has_outcome` and `next` with the GIL.
struct port_call {
  static constexpr std::size_t reply_bytes = 1024;

  port_call() = default;
  ~port_call();
  port_call(const port_call&) = delete;
  port_call& operator=(const port_call&) = delete;

  nb::object port;  // keeps it alive
  nb::object cookie;
  nb::object block;                // the reply's place, or none: then it is `reply`
  std::vector<Py_buffer> buffers;  // the request, then what its arguments refer to
  std::uint64_t id = 0;
  bool is_waited_for = false;
  bool is_delivered = false;
  lev::outcome how;
  // Written by whoever consumed the ticket, after `how`, which it publishes; read with the GIL.
  std::atomic<bool> has_outcome{false};
  port_call* next = nullptr;  // in the list of finished calls
  alignas(16) char reply[reply_bytes];
};

class call_port {
 public:
  // `deliver` gets a list of (cookie, status, code, text, reply) for each batch of finished calls.
  call_port(nb::object runtime, nb::object deliver, bool may_rerun, nb::object setup);

  // submit() returns the call, or none when all tickets are in use. Raises what Runtime.submit()
  // raises. The caller must drain() afterwards if has_finished().
  nb::object submit(nb::handle self, nb::object cookie, nb::object request, nb::list buffers,
                    nb::object block);
  // wait() returns true when the call's outcome was delivered; false when that is left to somebody
  // else, who is at it, or the time is over.
  bool wait(port_call& c, nb::object timeout);
  // tend() lets ends come in and posts go out, without waiting; `c` is a call under way.
  void tend(port_call& c);
  void drain();
  bool has_finished() const noexcept {
    return finished_.load(std::memory_order_relaxed) != nullptr;
  }

  int traverse(visitproc visit, void* arg);
  void clear();

 private:
  static void on_complete(void* context) noexcept;
  bool push(port_call* c) noexcept;
  void add_to(nb::list& batch, port_call& c);
  void deliver(const nb::list& batch);

  nb::object runtime_;
  nb::object deliver_;
  nb::object setup_;
  bool may_rerun_;
  // Calls whose callback has run. Written by completing threads, which push with release; emptied
  // with the GIL, with acquire.
  std::atomic<port_call*> finished_{nullptr};
};

}  // namespace lev::python

#endif
