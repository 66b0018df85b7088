// Opening and closing a runtime under Python, and the list of finished holds.
//
// A hold's way: submit -> then(on_complete) -> [task completes] -> pushed on finished_ by the
// completing thread, without the GIL -> taken by the next Python call, which ends the buffer
// exports with the GIL. A ticket that is waited for releases its buffers at once; the list then
// finds them released.
#include "session.hpp"

#include <pthread.h>

#include <string_view>

#include "gil.hpp"
#include "obituaries.hpp"
#include "shared.hpp"
#include "ticket.hpp"
#include "waiting.hpp"

namespace lev::python {

namespace {

void in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  forget_kept_blocks();
  forget_other_waiters();
  become_main_thread();
}

std::vector<const char*> words_of(const std::vector<std::string>& command) {
  std::vector<const char*> words;
  for (const std::string& word : command) words.push_back(word.c_str());
  words.push_back(nullptr);
  return words;
}

lev::runtime* open(config c, const std::vector<const char*>& command, nb::handle deaths) {
  if (command.size() > 1) c.processes.worker_command = command.data();
  if (!deaths.is_none()) c.processes.on_death = nb::cast<obituaries&>(deaths).hook();
  try {
    const gil_released released;
    return new lev::runtime(c);
  } catch (const error& e) {
    const status code = e.code();
    const std::string message = e.what();
    raise_status(code, in_python(message));
  }
}

}  // namespace

std::shared_ptr<session> session::make(config c, std::vector<std::string> command,
                                       nb::object obituaries) {
  return {new session(c, std::move(command), std::move(obituaries)), &session::end};
}

// Where the main thread has no room for another call, it stays open until the process ends.
void session::end(session* s) noexcept {
  const auto later = [](void* left) { return end(static_cast<session*>(left)), 0; };
  if (s->begin_to_close()) {
    delete s;
  } else {
    Py_AddPendingCall(later, s);
  }
}

session::session(config c, std::vector<std::string> command, nb::object obituaries)
    : obituaries_(std::move(obituaries)),
      command_(std::move(command)),
      command_words_(words_of(command_)),
      runtime_(open(c, command_words_, obituaries_)),
      fork_count_(fork_count()) {
  has_simulated |= std::string_view(runtime_->machine()) == "sim";
}

void watch_forks() {
  pthread_atfork(nullptr, nullptr, &in_child);
}

session::~session() {
  if (is_forked()) {  // the workers and their locks are the parent's: leak, rather than hang
    obituaries_.release();
    for (left_ticket& t : left_) t.of.forget();
    return;
  }
  left_.clear();
  {
    const gil_released released;
    delete runtime_;
  }
  collect_finished();
}

bool session::begin_to_close() noexcept {
  if (is_forked()) return true;
  const gil_released released;  // workers that end may need it
  return runtime_->close(0) != status::would_deadlock;
}

lev::runtime& session::refuse_runtime() {
  if (is_forked())
    raise_status(status::closed,
                 "this runtime was opened before os.fork(); open one in this process, or start "
                 "processes with the spawn method");
  raise_status(status::would_deadlock,
               "a Python function that is a task on 'sim' cannot call a runtime: all workers are "
               "one thread there, and the interpreter cannot be left in the middle; use "
               "'threads'");
}

void session::on_complete(void* context) noexcept {
  hold* h = static_cast<hold*>(context);
  h->awaited().strike();  // from the push below on it may be gone
  std::atomic<hold*>& finished = h->owner()->finished_;
  h->next = finished.load(std::memory_order_relaxed);
  // Pairs with the acquire in collect_finished: publishes h->next.
  while (!finished.compare_exchange_weak(h->next, h, std::memory_order_release,
                                         std::memory_order_relaxed)) {
  }
}

bool session::keep_until_complete(lev::ticket& t, hold* h) {
  h->add_user();
  if (t.then(&session::on_complete, h) == status::ok) return true;
  h->drop_user();
  return false;
}

void session::collect_finished() noexcept {
  // Pairs with the release in on_complete.
  hold* h = finished_.exchange(nullptr, std::memory_order_acquire);
  while (h != nullptr) {
    hold* next = h->next;
    h->release_buffers();
    h->awaited().release();
    h->drop_user();
    h = next;
  }
}

void session::leave_to_end(lev::ticket&& t, status expected) noexcept {
  try {
    left_.push_back({std::move(t), expected});
  } catch (const std::bad_alloc&) {  // it is dropped like any other
  }
  collect_left();
}

void session::collect_left() noexcept {
  std::erase_if(left_, [this](left_ticket& t) {
    if (!t.of.done()) return false;
    const status code = t.of.wait_outcome(0).code;
    if (code != status::ok && code != t.expected) note_dropped(code);
    return true;
  });
}

void session::note_dropped(status code) noexcept {
  if (dropped_count_++ == 0) dropped_ = code;
}

void session::add_dropped(outcome& o) noexcept {
  collect_left();
  if (dropped_count_ == 0) return;
  if (o.code == status::ok) o.code = dropped_;
  o.failures += dropped_count_;
  dropped_count_ = 0;
}

}  // namespace lev::python
