// The courier of a call port: a thread that delivers what nobody else does.
#include <unistd.h>

#include <chrono>
#include <utility>

#include "call_port.hpp"
#include "gil.hpp"
#include "obituaries.hpp"

namespace lev::python {

namespace {

// On a courier: its port was destroyed by what it delivered.
thread_local bool is_port_gone = false;

// How long the courier leaves finished calls to threads that have just used the port, and how often
// it looks. (bench python-function.)
constexpr std::int64_t left_ns = 500'000;
constexpr auto look_time = std::chrono::microseconds(200);

std::int64_t clock_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

call_port::~call_port() {
  if (courier_ != nullptr) courier_->is_over = true;
  if (!deaths_.is_none() && owner_ == getpid()) nb::cast<obituaries&>(deaths_).tell(nullptr);
  close();
  if (courier_ == nullptr || !courier_->thread.joinable()) return;
  courier_->thread.detach();
  is_port_gone = true;
}

void call_port::close() {
  end_courier();
  drop_spent();
  // They hold what holds this port. Everything was delivered.
  deliver_.reset();
  call_back_.reset();
}

void call_port::end_courier() {
  if (owner_ != getpid()) return forget_courier();
  if (!courier_->thread.joinable() || is_own_thread()) return;  // that one ends with the port
  const gil_released released;
  {
    const std::lock_guard lock(courier_->mutex);
    courier_->is_closing = true;
  }
  courier_->called.notify_one();
  courier_->thread.join();
}

// A fork has no such thread. Its handle may be one of another thread by now, the mutex may be
// taken, and the end of a condition variable would wait for its waiters: all is left as it is.
void call_port::forget_courier() noexcept {
  static_cast<void>(courier_.release());
}

void call_port::call_courier(bool is_hurried) noexcept {
  if (courier_ == nullptr) return;
  {
    const std::lock_guard lock(courier_->mutex);
    courier_->is_called = true;
    courier_->is_hurried |= is_hurried;
  }
  courier_->called.notify_one();
}

void call_port::try_later() noexcept {
  if (courier_ == nullptr) return;
  {
    const std::lock_guard lock(courier_->mutex);
    courier_->is_short = true;
  }
  call_courier(true);
}

void call_port::note_use() noexcept {
  used_ns_.store(clock_ns(), std::memory_order_relaxed);
}

void call_port::leave(bool is_urgent) noexcept {
  has_left_.store(true, std::memory_order_relaxed);
  call_courier(is_urgent);
}

bool call_port::is_looked_after() const noexcept {
  return clock_ns() - used_ns_.load(std::memory_order_relaxed) < left_ns;
}

void call_port::run_courier() {
  courier& me = *courier_;
  const pid_t owner = owner_;
  std::unique_lock lock(me.mutex);
  while (true) {
    me.called.wait(lock, [&me] { return me.is_called || me.is_closing; });
    if (!me.is_called) return;
    me.is_called = false;
    if (std::exchange(me.is_short, false)) me.called.wait_for(lock, look_time);
    const auto may_not_wait = [&me] { return me.is_hurried || me.is_closing; };
    while (!may_not_wait() && (has_finished() || has_left_) && is_looked_after())
      me.called.wait_for(lock, look_time, may_not_wait);
    const bool is_hurried = std::exchange(me.is_hurried, false);
    lock.unlock();
    const bool has_left = has_left_.exchange(false, std::memory_order_relaxed);
    if (is_hurried || has_left || has_finished() || has_deaths()) serve();
    if (getpid() != owner) _exit(0);  // a callback has forked: its child has come back from it
    if (is_port_gone) return;
    lock.lock();
  }
}

void call_port::serve() {
  const PyGILState_STATE state = PyGILState_Ensure();
  if (!courier_->is_over) {  // else the port is being destroyed, and waits for this thread
    const nb::object self = nb::find(this);
    const nb::object call_back = call_back_;
    deliver_failed();
    drain(true);
    try {
      if (call_back.is_valid()) call_back();
    } catch (nb::python_error& e) {
      e.discard_as_unraisable(call_back);
    }
  }
  PyGILState_Release(state);
}

}  // namespace lev::python
