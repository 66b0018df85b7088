// Submitting, waiting for and delivering Python calls.
#include "call_port.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <utility>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "obituaries.hpp"
#include "replies.hpp"
#include "shared.hpp"
#include "ticket.hpp"
#include "waiting.hpp"
#include "worker.hpp"

namespace lev::python {

namespace {

// While above 0, this thread delivers nothing when a call completes on it: its caller does.
thread_local int is_in_submit = 0;
thread_local bool is_draining = false;
// Whether this thread is one of Python's, in wait(): it has given up the GIL.
thread_local bool is_in_wait = false;

// Above that, copying the arguments is long enough for other threads to run meanwhile.
constexpr std::size_t gil_kept_bytes_max = 256 << 10;

class flagged {
 public:
  flagged() noexcept { ++is_in_submit; }
  ~flagged() { --is_in_submit; }
  flagged(flagged&&) = delete;
};

argument memory(kind what, const void* address, std::size_t bytes) {
  argument a;
  a.what = what;
  a.address = reinterpret_cast<std::uintptr_t>(address);
  a.row_bytes = bytes;
  a.stride_bytes = static_cast<std::int64_t>(bytes);
  return a;
}

runtime_object& runtime_in(const nb::object& o) {
  return *nb::inst_ptr<runtime_object>(o);
}

lev::ticket try_submit(lev::runtime& r, const descriptor& d, const call_port::limits& own,
                       std::size_t bytes, refusal* why) {
  const flagged here;
  options asked;
  asked.task_ns_max(own.task_ns_max).max_attempts(own.max_attempts);
  const options* o = own.task_ns_max != 0 || own.max_attempts != 0 ? &asked : nullptr;
  if (bytes <= gil_kept_bytes_max) return r.try_submit(d, o, why);
  const gil_released released;
  return r.try_submit(d, o, why);
}

}  // namespace

call_port::call_port(nb::object runtime, nb::object deliver, nb::object call_back, bool may_rerun,
                     nb::object setup, nb::object deaths)
    : runtime_(std::move(runtime)),
      deliver_(std::move(deliver)),
      call_back_(std::move(call_back)),
      setup_(nb::cast<std::pair<std::uint64_t, std::uint64_t>>(setup)),
      deaths_(std::move(deaths)),
      may_rerun_(may_rerun),
      owner_(getpid()),
      courier_(std::make_unique<courier>()) {
  if (!is_made<runtime_object>(runtime_)) raise_type_error("runtime must be a Runtime");
  obituaries* told = deaths_.is_none() ? nullptr : &nb::cast<obituaries&>(deaths_);
  courier_->thread = std::thread([this] { run_courier(); });
  if (told != nullptr) told->tell(this);  // nothing fails any more
}

nb::object call_port::submit(nb::handle self, nb::object cookie, nb::object request,
                             nb::list buffers, nb::object block, const limits& own) {
  drop_spent();
  lev::runtime& r = runtime_in(runtime_).runtime();
  auto* c = new port_call;
  nb::object owner = nb::cast(c, nb::rv_policy::take_ownership);
  c->port = nb::borrow(self);
  c->cookie = std::move(cookie);
  c->block = std::move(block);
  c->buffers.reserve(buffers.size() + 1);

  descriptor d;
  argument& s = d.arguments[call_setup];
  s.address = setup_.first;
  s.row_bytes = setup_.second;
  s.unit_bytes = 16;
  std::size_t bytes = 0;
  const auto add = [&](nb::handle memory_of) {
    const Py_buffer& one = c->buffers.emplace_back(buffer_of(memory_of, PyBUF_SIMPLE));
    bytes += static_cast<std::size_t>(one.len);
    return memory(kind::in, one.buf, static_cast<std::size_t>(one.len));
  };
  d.arguments[call_request] = add(request);
  d.arguments[call_reply] = memory(kind::out, c->reply, port_call::reply_bytes);
  if (!c->block.is_none()) {
    const auto& place = *nb::inst_ptr<shared_block>(c->block);
    d.arguments[call_reply] = memory(kind::out, place.data(), place.bytes());
  }
  unsigned count = call_buffers;
  for (nb::handle each : buffers) {
    if (count == argument_count_max) raise_value_error("too many buffers");
    d.arguments[count++] = add(each);
  }
  const bool may_rerun = own.may_rerun.is_none() ? may_rerun_ : nb::cast<bool>(own.may_rerun);
  d.procedure = python_call(count - call_buffers, may_rerun);
  d.argument_count = static_cast<std::uint8_t>(count);

  note_use();
  refusal why;
  lev::ticket t = try_submit(r, d, own, bytes, &why);
  if (!t && why.code == status::would_block) return nb::none();
  if (!t) raise_status(why.code, why.message);
  c->id = t.id();
  owner.inc_ref();  // until it is delivered
  // Here: a Ctrl-C may keep the caller from ever seeing what is returned.
  if (nb::hasattr(c->cookie, "call")) nb::setattr(c->cookie, "call", owner);
  const flagged here;
  t.then(&call_port::on_complete, c);
  t.forget();  // consumed by the callback, or by wait()
  return owner;
}

bool call_port::push(port_call* c) noexcept {
  port_call* next = finished_.load(std::memory_order_relaxed);
  do c->next = next;
  // Pairs with the acquire in drain(): publishes c->next. Afterwards the call may be gone.
  // Sequentially consistent: the look at awaited_ comes after it.
  while (!finished_.compare_exchange_weak(next, c, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
  return next == nullptr;
}

void call_port::begin_wait(port_call& c) noexcept {
  c.waiter = std::this_thread::get_id();
  is_in_wait = true;
  const port_call* none = nullptr;
  awaited_.compare_exchange_strong(none, &c, std::memory_order_relaxed);
}

// What ended within the wait was left to this thread.
void call_port::end_wait(port_call& c) noexcept {
  c.waiter = std::thread::id();
  is_in_wait = false;
  if (c.further_waiters != 0) tell_other_waiters();
  if (awaited_.load(std::memory_order_relaxed) != &c) return;
  // Pairs with on_complete(): either that sees that nobody waits, or this sees what it has pushed.
  awaited_.store(nullptr, std::memory_order_seq_cst);
  // Pairs with push(), as above.
  if (finished_.load(std::memory_order_seq_cst) != nullptr) call_courier();
}

void call_port::on_complete(void* context) noexcept {
  auto* c = static_cast<port_call*>(context);
  call_port& port = *nb::inst_ptr<call_port>(c->port);
  lev::outcome how = with_borrowed(runtime_in(port.runtime_).state(), c->id,
                                   [](lev::ticket& t) { return t.wait_outcome(0); });
  // A wait() was quicker, and delivers it.
  if (how.code == status::stale_ticket) return port.note_spent(c);
  c->how = std::move(how);
  // Pairs with the acquire in add_to(): publishes `how`.
  c->has_outcome.store(true, std::memory_order_release);
  const bool is_urgent = c->is_urgent.load(std::memory_order_relaxed);
  // Whoever finds the list empty sees to it that it is delivered.
  const bool is_first = port.push(c);
  if (is_in_submit != 0 || !(is_first || is_urgent)) return;
  if (!is_in_wait) {
    // Pairs with end_wait(). Only compared: the call may be gone.
    if (!is_urgent && port.awaited_.load(std::memory_order_seq_cst) == c) return;
    return port.call_courier(is_urgent);
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  port.drain(true);
  PyGILState_Release(state);
}

// Nobody is woken for it: the next thread that uses the port drops it.
void call_port::note_spent(port_call* c) noexcept {
  port_call* next = spent_.load(std::memory_order_relaxed);
  do c->next = next;
  // Pairs with the acquire in drop_spent(): publishes c->next.
  while (
      !spent_.compare_exchange_weak(next, c, std::memory_order_release, std::memory_order_relaxed));
}

void call_port::drop_spent() noexcept {
  if (spent_.load(std::memory_order_relaxed) == nullptr) return;
  // Pairs with the release in note_spent().
  drop(spent_.exchange(nullptr, std::memory_order_acquire));
}

void call_port::drop(port_call* list) noexcept {
  while (list != nullptr) nb::find(std::exchange(list, list->next)).dec_ref();
}

// nb::list() raises nothing where there is no memory.
static nb::list list_if_room() noexcept {
  nb::list made;
  if (!made.is_valid()) PyErr_Clear();
  return made;
}

static void add_without_reply(nb::list& batch, const nb::object& cookie, int code,
                              nb::handle call) {
  try {
    batch.append(nb::make_tuple(cookie, code, 0, nb::str(""), nb::none(), call));
  } catch (nb::python_error& e) {
    e.discard_as_unraisable(cookie);
  }
}

void call_port::add_to(nb::list& batch, port_call& c) {
  // Pairs with the release of whoever consumed the ticket.
  if (c.is_delivered || !c.has_outcome.load(std::memory_order_acquire)) return;
  c.is_delivered = true;
  if (c.further_waiters != 0) tell_other_waiters();
  nb::object reply = std::move(c.block);
  c.block = nb::none();
  const int code = static_cast<int>(c.how.code);
  const nb::handle call = nb::find(&c);
  try {
    if (reply.is_none() && c.how.code == status::ok) {
      reply = plain_reply(c.reply, port_call::reply_bytes);
      if (!reply.is_valid()) reply = nb::bytes(c.reply, port_call::reply_bytes);
    }
    batch.append(nb::make_tuple(c.cookie, code, c.how.task_code,
                                python_text(thrown_text(c.how.exception)), std::move(reply), call));
  } catch (nb::python_error& e) {  // no memory for it: the call has an end all the same
    e.discard_as_unraisable(c.cookie);
    add_without_reply(batch, c.cookie, code, call);
  }
  c.cookie = nb::none();
  release_all(c.buffers);
  c.how = {};
}

bool call_port::has_deaths() const noexcept {
  return !deaths_.is_none() && nb::inst_ptr<obituaries>(deaths_)->has_any();
}

void call_port::deliver(const nb::list& batch, bool may_run_code) {
  if (batch.size() == 0 && !has_deaths()) return;
  const nb::object to = deliver_;  // it may close this port
  if (!to.is_valid()) return;
  try {
    to(batch, may_run_code);
  } catch (nb::python_error& e) {
    if (is_own_thread()) return deliver_again(to, batch, e);
    // A signal's handler may raise in there: KeyboardInterrupt mostly, or a time limit of the
    // program's; and the caller's stack may be too deep. The courier knows neither. What was to be
    // delivered is, and the program hears of what was raised a moment later.
    failed_.append(batch);
    call_courier(true);
    if (!e.matches(PyExc_RecursionError)) raise_later(e);
  }
}

// On the courier.
void call_port::deliver_again(const nb::object& to, const nb::list& batch, nb::python_error& e) {
  e.discard_as_unraisable(to);
  constexpr int tries_max = 4;
  for (int i = 0; i < tries_max; ++i) {
    try {
      to(batch, true);
      return;
    } catch (nb::python_error& again) {
      again.discard_as_unraisable(to);
    }
  }
}

// What could not be delivered elsewhere; on the courier.
void call_port::deliver_failed() {
  nb::list failed = list_if_room();
  if (!failed.is_valid()) return try_later();
  std::swap(failed, failed_);
  for (nb::handle each : failed) deliver(nb::borrow<nb::list>(each), true);
}

void call_port::drain(bool may_run_code) {
  if (is_draining) return;  // the call below on this thread's stack goes on
  struct draining {
    draining() noexcept { is_draining = true; }
    ~draining() { is_draining = false; }
  };
  const draining here;
  while (has_finished()) {
    nb::list batch = list_if_room();
    if (!batch.is_valid()) return try_later();  // they stay where they are
    // Pairs with the release in push().
    port_call* list = finished_.exchange(nullptr, std::memory_order_acquire);
    port_call* oldest = nullptr;
    for (port_call* c = list; c != nullptr;) {
      port_call* next = c->next;
      c->next = oldest;
      oldest = c;
      c = next;
    }
    for (port_call* c = oldest; c != nullptr; c = c->next) add_to(batch, *c);
    deliver(batch, may_run_code);
    drop(oldest);
  }
  if (!has_deaths()) return;
  const nb::list none = list_if_room();
  if (!none.is_valid()) return try_later();
  deliver(none, may_run_code);
}

// The caller has made `batch` before it got the outcome, which only this thread knows of now.
void call_port::take(port_call& c, lev::outcome&& how, nb::list& batch, bool may_run_code) {
  c.how = std::move(how);
  c.has_outcome.store(true, std::memory_order_release);  // Pairs with add_to(), on this thread
  add_to(batch, c);
  deliver(batch, may_run_code);
  // Calls that ended on this thread while deliver() handed others over.
  if (has_finished()) drain(may_run_code);
}

bool call_port::wait(port_call& c, nb::object timeout) {
  if (c.is_delivered) return true;
  if (is_draining) return false;
  const deadline end(timeout);
  if (!wait_for_turn(c, end)) return c.is_delivered;
  nb::list batch;
  if (!batch.is_valid()) throw nb::python_error();
  struct waiting {
    waiting(call_port& at, port_call& of) noexcept : port(at), call(of) { port.begin_wait(call); }
    ~waiting() { port.end_wait(call); }
    call_port& port;
    port_call& call;
  };
  const waiting w(*this, c);
  lev::runtime& r = runtime_in(runtime_).runtime();
  lev::outcome how = wait_in_slices(end, [&](std::int64_t ns) {
    return with_borrowed(r.state(), c.id, [ns](lev::ticket& t) { return t.wait_outcome(ns); });
  });
  note_use();
  if (how.code == status::stale_ticket) return wait_for_delivery(c, end);
  if (!lev::ticket::consumes(how.code)) {
    if (has_finished()) drain(true);  // not to wait for a thread that waits for the GIL
    return c.is_delivered;
  }
  take(c, std::move(how), batch, true);
  return true;
}

// Whether this thread is to wait in the runtime. Not below a signal's handler in such a wait, nor
// in a child that a handler forks here: the thread that waits is not in that one.
bool call_port::wait_for_turn(port_call& c, const deadline& end) {
  struct further {
    explicit further(port_call& of) noexcept : call(of) { ++call.further_waiters; }
    ~further() { --call.further_waiters; }
    port_call& call;
  };
  while (c.waiter != std::thread::id()) {
    if (c.waiter == std::this_thread::get_id() || owner_ != getpid()) return false;
    const further counted(c);
    await_other_waiter(end);
    if (c.is_delivered || end.remaining_ns() == 0) return false;
  }
  return true;
}

// Another thread has consumed the ticket, and is about to put the call into the list. It may leave
// the rest to the courier, whom a callback of the user's may keep for long. In a child that a
// signal's handler forks here, that thread is not.
bool call_port::wait_for_delivery(const port_call& c, const deadline& end) {
  while (true) {
    if (has_finished()) drain(true);
    if (c.is_delivered || owner_ != getpid() || end.remaining_ns() == 0) return c.is_delivered;
    {
      const gil_released released;
      std::this_thread::yield();
    }
    run_handlers();
  }
}

void call_port::tend(port_call& c) {
  if (c.is_delivered || c.waiter != std::thread::id() || is_draining) return;
  nb::list batch = list_if_room();
  if (!batch.is_valid()) return;
  const auto look = [](lev::ticket& t) {
    const flagged here;
    return t.wait_outcome(1);
  };
  lev::outcome how = with_borrowed(runtime_in(runtime_).state(), c.id, look);
  if (!lev::ticket::consumes(how.code) || how.code == status::stale_ticket) {
    if (has_finished()) drain(is_own_thread());
    return;
  }
  take(c, std::move(how), batch, is_own_thread());
}

bool call_port::end(port_call& c) {
  if (c.is_delivered) return false;
  lev::runtime& r = runtime_in(runtime_).runtime();
  const gil_released released;
  const auto ask = [](lev::ticket& t) { return t.end() == status::ok; };
  return with_borrowed(r.state(), c.id, ask);
}

int call_port::traverse(visitproc visit, void* arg) {
  Py_VISIT(runtime_.ptr());
  Py_VISIT(deliver_.ptr());
  Py_VISIT(call_back_.ptr());
  Py_VISIT(failed_.ptr());
  return 0;
}

void call_port::clear() {
  deliver_.reset();
  call_back_.reset();
  failed_ = nb::list();
}

}  // namespace lev::python
