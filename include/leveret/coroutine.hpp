// co_await for tickets: a coroutine that awaits a ticket is resumed by the thread that completes
// the task.
//
//   co_await lev::when_done(runtime.submit(work, x, y));
#ifndef LEVERET_COROUTINE_HPP
#define LEVERET_COROUTINE_HPP

#include <leveret/ticket.hpp>

#include <coroutine>

namespace lev {

// Awaits the ticket's task. The co_await has no value; it rethrows like ticket::wait(). The ticket
// is consumed. Precondition: the coroutine is not destroyed while it awaits, as the end of the task
// resumes it; to give up, cancel the task, and let the coroutine see that.
class when_done {
 public:
  explicit when_done(ticket&& t) noexcept : ticket_(static_cast<ticket&&>(t)) {}
  bool await_ready() const noexcept { return ticket_.done(); }
  // The awaiter lives in the coroutine's frame and may be gone before then() returns: nothing of it
  // is touched afterwards.
  void await_suspend(std::coroutine_handle<> waiting) {
    const status code =
        ticket_.then([](void* frame) { std::coroutine_handle<>::from_address(frame).resume(); },
                     waiting.address());
    if (code != status::ok)
      detail::throw_error(code,
                          "co_await: the ticket already has a callback or is stale; await it once");
  }
  void await_resume() { ticket_.wait(); }

 private:
  ticket ticket_;
};

}  // namespace lev

#endif
