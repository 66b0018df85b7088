// While it exists, the calling thread is not cancelled (pthread_cancel()): the system calls that
// are points of cancellation are made where no exception may leave, and a thread that is cancelled
// there ends the program. The thread is cancelled later, at the next point outside.
#pragma once

#include <pthread.h>

namespace lev {

class uncancelled {
 public:
  uncancelled() noexcept {
    if (depth_++ == 0) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~uncancelled() {
    if (--depth_ == 0) pthread_setcancelstate(before_, nullptr);
  }
  uncancelled(uncancelled&&) = delete;

 private:
  // Of the thread: tasks that close runtimes in contexts of one worker do not end in turn.
  static constinit inline thread_local unsigned depth_ = 0;
  static constinit inline thread_local int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace lev
