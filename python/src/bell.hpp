// bell: how completed tasks wake an event loop of Python's: a descriptor that the loop watches.
//
// A loop has one bell. A ticket that a coroutine awaits has a `chime` for it in its hold; the
// thread that completes the task strikes it, without the GIL. Whichever is first, coroutine or
// completion, one exchange of a pointer decides: a chime that comes too late is refused.
#pragma once

#include <atomic>
#include <memory>

namespace lev::python {

class bell {
 public:
  // Raises OSError when there is no descriptor.
  bell();
  ~bell();
  bell(bell&&) = delete;

  int fileno() const noexcept { return file_; }
  void ring() noexcept;
  // clear() forgets the rings so far.
  void clear() noexcept;

 private:
  int file_;
};

// What a completion rings.
class chimes {
 public:
  chimes() = default;
  ~chimes() { drop(struck()), release(); }
  chimes(chimes&&) = delete;

  // add() has `b` rung by strike(); false: that has been already.
  bool add(std::shared_ptr<bell> b);
  // strike() rings all bells, once. It lets go of none: a bell is an object of Python's, and the
  // completing thread must not wait for the GIL, which another may keep for long.
  void strike() noexcept;
  // release() lets go of the bells that were struck. With the GIL, by those who know of the strike.
  void release() noexcept;

 private:
  struct chime {
    std::shared_ptr<bell> where;
    chime* next;
  };

  chime* struck() noexcept;
  static void drop(chime* list) noexcept;

  // The chimes, or over() when they were struck. Written by coroutines, with the GIL, and by the
  // completing thread; publishes the chimes to that.
  std::atomic<chime*> first_{nullptr};
  chime* rung_ = nullptr;  // those that were struck; written by the completing thread
};

}  // namespace lev::python
