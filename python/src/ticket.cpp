// Waiting for one ticket: claim it, wait without the GIL in slices, remember the outcome, release
// the buffers.
#include "ticket.hpp"

#include <nanobind/ndarray.h>

#include <condition_variable>
#include <mutex>
#include <string_view>

#include "choices.hpp"
#include "errors.hpp"
#include "values.hpp"

namespace lev::python {

namespace {

// Told whenever a thread stops waiting for tickets. Never destroyed: threads may wait while the
// process ends.
struct waiter_news {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t version = 0;  // guarded by mutex

  std::uint64_t now() {
    const std::lock_guard lock(mutex);
    return version;
  }
};

waiter_news* the_news = new waiter_news;  // replaced in a child of fork()

// Threads in await_other_waiter(): without any there is nobody to tell. With the GIL, which a
// thread holds from its look at a ticket until it is counted. A child of fork() may keep a count of
// threads that are not there, and then takes the lock in vain.
unsigned news_readers = 0;

waiter_news& news() {
  return *the_news;
}

nb::object result_array(hold& held, std::size_t index, scalar type, std::size_t tasks) {
  using code = nb::dlpack::dtype_code;
  const code family = type.family == 'f'   ? code::Float
                      : type.family == 'i' ? code::Int
                      : type.family == 'c' ? code::Complex
                      : type.family == 'b' ? code::Bool
                                           : code::UInt;
  const nb::dlpack::dtype dtype{static_cast<std::uint8_t>(family),
                                static_cast<std::uint8_t>(8 * type.bytes), 1};
  held.add_user();
  const nb::capsule owner(&held, [](void* h) noexcept { static_cast<hold*>(h)->drop_user(); });
  const std::size_t shape[1] = {tasks};
  return nb::ndarray<nb::numpy>(held.result(index), 1, shape, owner, nullptr, dtype).cast();
}

}  // namespace

void forget_other_waiters() {
  the_news = new waiter_news;
}

void await_other_waiter(const deadline& end) {
  struct reader {
    reader() noexcept { ++news_readers; }
    ~reader() { --news_readers; }
  };
  const reader counted;
  waiter_news& n = news();
  const std::uint64_t seen = n.now();
  // The mutex is taken inside the step: nobody may wait for the GIL while holding it.
  wait_in_slices(end, [&](std::int64_t ns) {
    std::unique_lock lock(n.mutex);
    const auto is_new = [&] { return n.version != seen; };
    const auto slice = std::chrono::nanoseconds(ns == no_timeout ? 1'000'000'000 : ns);
    outcome o;
    o.code = n.changed.wait_for(lock, slice, is_new) ? status::ok : status::timed_out;
    return o;
  });
}

claim::claim(ticket_object& t) : ticket_(t) {
  t.waiter_ = std::this_thread::get_id();
}

claim::~claim() {
  ticket_.waiter_ = std::thread::id();
  tell_other_waiters();
}

void tell_other_waiters() {
  if (news_readers == 0) return;
  waiter_news& n = news();
  const std::lock_guard lock(n.mutex);
  ++n.version;
  n.changed.notify_all();
}

ticket_object::ticket_object(std::shared_ptr<session> owner, const plan& p, lev::ticket&& core,
                             hold* held, std::size_t tasks, bool is_bulk)
    : owner_(std::move(owner)),
      plan_(p),
      id_(core.id()),
      core_(std::move(core)),
      held_(held),
      tasks_(tasks),
      is_bulk_(is_bulk) {
  if (held_ == nullptr) return;
  held_->add_user();
  owner_->keep_until_complete(core_, held_);
}

ticket_object::ticket_object(std::shared_ptr<session> owner, const plan& p, status failure)
    : owner_(std::move(owner)),
      plan_(p),
      tasks_(0),
      is_uncollected_(true),
      code_(failure),
      failures_(1) {}

ticket_object::ticket_object(std::shared_ptr<session> owner, const plan& p, hold* held)
    : owner_(std::move(owner)),
      plan_(p),
      held_(held),
      tasks_(0),
      is_bulk_(true),
      code_(status::ok) {
  held_->add_user();
  held_->release_buffers();
}

ticket_object::~ticket_object() {
  // In a forked child the core is not to be touched: its tickets belong to the parent.
  if (owner_->is_forked()) {
    core_.forget();
  } else if (is_given_up_ && !is_finished()) {
    owner_->leave_to_end(std::move(core_), status::cancelled);
  }
  if (is_uncollected_) owner_->note_dropped(code_);
  if (held_ != nullptr) held_->drop_user();
}

void ticket_object::finish(const outcome& o) {
  code_ = o.code;
  task_code_ = o.task_code;
  failures_ = o.failures;
  if (o.exception != nullptr) thrown_ = thrown_text(o.exception);
  if (held_ != nullptr) held_->release_buffers();
  owner_->collect();
}

// A look with the GIL while another thread waits without it. It tells a task that waits for itself
// from one that only comes second. When it finds the outcome first, the other thread finds the
// ticket stale, and this object finished.
outcome ticket_object::poll() {
  return with_borrowed(owner_->runtime().state(), id_,
                       [](lev::ticket& t) { return t.wait_outcome(0); });
}

void ticket_object::look() {
  const outcome o = poll();
  if (lev::ticket::consumes(o.code) && !is_finished()) finish(o);
}

outcome ticket_object::wait_alone(const deadline& end, wait_policy how) {
  // With the GIL: no other thread comes between. To give it up and take it back takes as long as a
  // short task.
  if (detail::is_soon_done(core_.home(), core_.id(), how)) return core_.wait_outcome(0);
  const claim mine(*this);
  const outcome o =
      wait_in_slices(end, [&](std::int64_t ns) { return core_.wait_outcome(ns, how); });
  if (is_finished()) core_.forget();
  return o;
}

bool ticket_object::try_wait(const deadline& end, wait_policy how) {
  while (!is_finished()) {
    owner_->runtime();
    if (is_own()) {
      look();
      if (is_finished()) break;
      raise_status(status::would_deadlock, "this thread waits for the ticket already");
    }
    const outcome o = is_waited_for() ? poll() : wait_alone(end, how);
    if (o.code == status::timed_out && end.remaining_ns() == 0) return false;
    if (o.code == status::timed_out || (o.code == status::stale_ticket && is_waited_for())) {
      await_other_waiter(end);
    } else if (!lev::ticket::consumes(o.code)) {
      raise_status(o.code, why_refused(o.code));
    } else if (!is_finished()) {
      finish(o);
    }
  }
  collect();
  return true;
}

std::string ticket_object::failure_text() const {
  const std::string who = "procedure '" + plan_.name + "'";
  if (thrown_.compare(0, who.size(), who) == 0) return thrown_;  // the runtime names it itself
  std::string text = who + ": ";
  if (code_ == status::cancelled) {
    text += "cancelled before it ran, or ended while it did";
  } else if (code_ == status::dependency_failed) {
    text += "did not run, because a task named in after= failed";
  } else if (!thrown_.empty()) {
    text += thrown_;
  } else if (code_ == status::task_failed) {
    text += "returned " + std::to_string(task_code_);
  } else {
    text += status_name(code_);
  }
  return text;
}

void ticket_object::raise_failure(unsigned failures) const {
  std::string text = failure_text();
  if (failures > 1) text += " (the first of " + std::to_string(failures) + " tasks that failed)";
  raise_status(code_, text, -1, task_code_, failures);
}

void ticket_object::check() const {
  if (code_ != status::ok) raise_failure(failures_);
}

void ticket_object::wait(const deadline& end, wait_policy how) {
  if (!try_wait(end, how))
    raise_status(status::timed_out, "procedure '" + plan_.name + "' is not complete yet");
  check();
}

nb::object ticket_object::result(const deadline& end, wait_policy how) {
  wait(end, how);
  if (plan_.result_count == 0 || held_ == nullptr) return nb::none();
  nb::list values;
  std::size_t index = 0;
  for (const slot& s : plan_.slots) {
    if (s.what != kind::result) continue;
    nb::object value = is_bulk_ ? result_array(*held_, index, s.type, tasks_)
                                : from_bits(held_->result(index), s.type);
    if (plan_.result_count == 1) return value;
    values.append(value);
    ++index;
  }
  return nb::tuple(values);
}

bool ticket_object::done() {
  if (is_finished()) return true;
  return with_borrowed(owner_->runtime().state(), id_, [](lev::ticket& t) { return t.done(); });
}

bool ticket_object::cancel() {
  if (is_finished()) return code_ == status::cancelled;
  const auto ask = [](lev::ticket& t) { return t.cancel() == status::ok; };
  return with_borrowed(owner_->runtime().state(), id_, ask);
}

// A loop that sleeps inside a task would keep its worker from what it waits for: a wait does not.
bool ticket_object::ring(std::shared_ptr<bell> b) {
  if (done() || detail::is_in_task()) return false;
  if (std::string_view(owner_->runtime().machine()) == "sim") return false;  // nobody else runs it
  if (held_ == nullptr) {
    auto* made = new hold(owner_.get(), 0);
    made->add_user();
    const auto keep = [&](lev::ticket& t) { return owner_->keep_until_complete(t, made); };
    if (!with_borrowed(owner_->runtime().state(), id_, keep)) {
      made->drop_user();
      return false;
    }
    held_ = made;
  }
  return held_->awaited().add(std::move(b));
}

bool ticket_object::end() {
  if (is_finished()) return false;
  const status said =
      with_borrowed(owner_->runtime().state(), id_, [](lev::ticket& t) { return t.end(); });
  if (said == status::not_supported)
    raise_status(said,
                 "procedure '" + plan_.name +
                     "': a task that runs can be ended on the machine 'processes' only; if it "
                     "waits, it will not run");
  return said == status::ok;
}

}  // namespace lev::python
