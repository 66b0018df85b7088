// The runtime: workers of one machine, and the way tasks reach them.
//
//   lev::runtime runtime;  // threads, one worker per spare core
//   runtime.submit(saxpy_procedure, 2.0f, x, y).wait();
//
// Thread safety: every member may be called from any thread, except the constructor, close() and
// the destructor. A runtime belongs to its process: after fork() the child's calls are refused with
// `closed`, and its close() and destructor do nothing (docs/how-to/fork-and-exit.md).
#ifndef LEVERET_RUNTIME_HPP
#define LEVERET_RUNTIME_HPP

#include <leveret/callable.hpp>
#include <leveret/config.hpp>
#include <leveret/counters.hpp>
#include <leveret/filter.hpp>
#include <leveret/options.hpp>
#include <leveret/procedure.hpp>
#include <leveret/reduce.hpp>
#include <leveret/ticket.hpp>

#include <initializer_list>
#include <type_traits>

namespace lev {

// pack() builds the descriptor of a typed call without submitting it.
template <class... Parameters, class... Arguments>
descriptor pack(procedure<void(Parameters...)> p, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "the procedure takes another number of arguments");
  descriptor d;
  d.procedure = p.id;
  d.argument_count = sizeof...(Parameters);
  unsigned i = 0;
  ((d.arguments[i++] = detail::parameter<Parameters>::pack(static_cast<Arguments&&>(arguments))),
   ...);
  return d;
}

namespace detail {

runtime_state* open(const config& c);
void close(runtime_state* runtime) noexcept;
status close_within(runtime_state* runtime, std::int64_t timeout_ns, bool cancel_waiting) noexcept;
status close_by_force(runtime_state* runtime, std::int64_t timeout_ns) noexcept;

// submit_call() is submit() for a typed call without options, post_call() for one without a ticket
// as well; `plain_kinds` is what plain_kinds_of_call() says of its arguments (procedure.hpp). All
// throw lev::error.
std::uint64_t submit(runtime_state* runtime, const draft& d, const options* o, bool detached);
std::uint64_t submit_call(runtime_state* runtime, const draft& d, std::uint64_t plain_kinds);
std::uint64_t post_call(runtime_state* runtime, const draft& d, std::uint64_t plain_kinds);
std::uint64_t try_submit(runtime_state* runtime, const draft& d, const options* o, bool detached,
                         refusal* why) noexcept;
std::uint64_t submit_at_once(runtime_state* runtime, const draft& d) noexcept;
std::uint64_t submit_within(runtime_state* runtime, const draft& d, const options* o, refusal* why,
                            std::int64_t timeout_ns) noexcept;
using fill = void (*)(void* context, std::size_t index, descriptor& task);
std::uint64_t submit_bulk(runtime_state* runtime, std::size_t count, fill make, void* context);
std::uint64_t submit_bulk_range(runtime_state* runtime, std::size_t count, fill make,
                                void* context);
std::uint64_t submit_columns(runtime_state* runtime, std::size_t count, const draft& all);
void run_loop(runtime_state* runtime, range r, std::uint32_t grain, void (*run)(void*, range),
              void* context);

template <class... Arguments>
constexpr bool starts_with_options = false;
template <class First, class... Rest>
constexpr bool starts_with_options<First, Rest...> =
    std::is_same_v<std::remove_cvref_t<First>, options>;

template <class T>
constexpr bool is_callable = std::is_function_v<std::remove_pointer_t<std::remove_cvref_t<T>>> ||
                             requires { &std::remove_cvref_t<T>::operator(); };

template <class... Parameters>
procedure<void(Parameters...)> procedure_with(procedure_id id, void (*)(Parameters...)) noexcept {
  return {id};
}
// A function's noexcept is a part of its type, and so of the name of its id: it must not be lost.
template <auto Function>
auto procedure_of() noexcept {
  return detail::procedure_with(id_of<Function>, Function);
}

}  // namespace detail

// Says that a function may be called from any thread, even by several at once.
struct any_thread {};
constexpr any_thread from_any_thread;

class runtime {
 public:
  // Opens the machine and starts its workers. Throws lev::error: bad_config, unavailable,
  // out_of_memory.
  explicit runtime(const config& c = {}) : state_(detail::open(c)) {}
  // Waits for all tasks, then stops the workers.
  ~runtime() {
    if (state_ != nullptr) detail::close(state_);
  }
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // submit() hands over one task and returns its ticket. The arguments' memory must stay valid
  // until the task completed. Throws lev::error naming the argument when the input is refused (then
  // nothing was submitted). Cost: no allocation and no system call, unless a sleeping worker must
  // be woken.
  template <class... Parameters, class... Arguments>
  ticket submit(procedure<void(Parameters...)> p, Arguments&&... arguments) {
    return {state_, submit_typed(nullptr, false, p, static_cast<Arguments&&>(arguments)...)};
  }
  template <class... Parameters, class... Arguments>
  ticket submit(const options& o, procedure<void(Parameters...)> p, Arguments&&... arguments) {
    return {state_, submit_typed(&o, false, p, static_cast<Arguments&&>(arguments)...)};
  }
  // The same for a function registered with LEV_PROCEDURE.
  template <auto Function, class... Arguments>
    requires(!detail::starts_with_options<Arguments...>)
  ticket submit(Arguments&&... arguments) {
    return submit(detail::procedure_of<Function>(), static_cast<Arguments&&>(arguments)...);
  }
  template <auto Function, class... Arguments>
  ticket submit(const options& o, Arguments&&... arguments) {
    return submit(o, detail::procedure_of<Function>(), static_cast<Arguments&&>(arguments)...);
  }
  // The same for a descriptor; `o` may be null.
  ticket submit(const descriptor& d, const options* o = nullptr) {
    return {state_, detail::submit(state_, detail::draft_of(d), o, false)};
  }
  // A function or a lambda is no procedure yet: refused with what to do.
  template <class Callable, class... Arguments>
    requires(detail::is_callable<Callable>)
  ticket submit(Callable&&, Arguments&&...) {
    static_assert(!detail::is_callable<Callable>,
                  "submit() takes a procedure: what lev::define() returned, or submit<function>() "
                  "after LEV_PROCEDURE(function); a lambda with captures runs in parallel_for()");
    return {};
  }
  template <class Callable, class... Arguments>
    requires(detail::is_callable<Callable>)
  ticket submit(const options&, Callable&& callable, Arguments&&...) {
    return submit(static_cast<Callable&&>(callable));
  }
  // submit() without exceptions: on a refusal it returns an empty ticket, and `why` has the reason.
  ticket try_submit(const descriptor& d, const options* o, refusal* why) noexcept {
    return {state_, detail::try_submit(state_, detail::draft_of(d), o, false, why)};
  }

  // submit_within() is try_submit(), but a host that finds no ticket waits so many nanoseconds at
  // most, plus the time of a task that it runs meanwhile. Then nothing was submitted, and `why` has
  // timed_out; the call may be repeated. A repeated call that would wait in vain says so at once.
  ticket submit_within(const descriptor& d, const options* o, refusal* why,
                       std::int64_t timeout_ns) noexcept {
    return {state_, detail::submit_within(state_, detail::draft_of(d), o, why, timeout_ns)};
  }

  // submit_at_once() is submit() for a caller that holds a lock, and so must not wait, run a task
  // or call a filter. If that would be needed, or the task is refused, it has done nothing and
  // returns an empty ticket; submit() then takes the task, or says why not.
  ticket submit_at_once(procedure_id p, const argument* arguments, unsigned count) noexcept {
    const auto used = static_cast<std::uint8_t>(count <= argument_count_max ? count : 255);
    return {state_, detail::submit_at_once(state_, {{p, used}, arguments})};
  }

  // post() submits without a ticket: for tasks that only wait_for_completion() waits for. It takes
  // the arguments of submit(), and is cheaper. Inside a task it is not refused for lack of tickets,
  // unless config::full is `fail`, or options::after() is given.
  template <class... Parameters, class... Arguments>
  void post(procedure<void(Parameters...)> p, Arguments&&... arguments) {
    submit_typed(nullptr, true, p, static_cast<Arguments&&>(arguments)...);
  }
  template <class... Parameters, class... Arguments>
  void post(const options& o, procedure<void(Parameters...)> p, Arguments&&... arguments) {
    submit_typed(&o, true, p, static_cast<Arguments&&>(arguments)...);
  }
  template <auto Function, class... Arguments>
    requires(!detail::starts_with_options<Arguments...>)
  void post(Arguments&&... arguments) {
    post(detail::procedure_of<Function>(), static_cast<Arguments&&>(arguments)...);
  }
  template <auto Function, class... Arguments>
  void post(const options& o, Arguments&&... arguments) {
    post(o, detail::procedure_of<Function>(), static_cast<Arguments&&>(arguments)...);
  }
  void post(const descriptor& d, const options* o = nullptr) {
    detail::submit(state_, detail::draft_of(d), o, true);
  }

  // submit_bulk() submits `count` tasks behind one ticket. make(i, task) fills the i-th descriptor;
  // it is called in order, on this thread, and must set every field it wants (the same descriptor
  // is handed to it again). All tasks are checked like single ones. On a refusal the error names
  // the task, and is thrown when the tasks before it have completed.
  template <class Make>
    requires std::is_invocable_v<Make&, std::size_t, descriptor&>
  ticket submit_bulk(std::size_t count, Make&& make) {
    auto call = [](void* context, std::size_t i, descriptor& d) {
      detail::callable_at<std::remove_reference_t<Make>>(context)(i, d);
    };
    return {state_, detail::submit_bulk(state_, count, call, detail::address_of_callable(make))};
  }

  // The same for a `make` that may be called from any thread, by several at once and in any order.
  // Then a bulk is one range of indices, and the participant that runs a task makes it first. If
  // tasks declare memory, it makes up to three (config::depth) ahead and prefetches their memory.
  // The descriptor is empty (argument_count 0) or as `make` has left it for another task: fields
  // that all tasks share need be set only if it is empty. `make` must outlive the bulk. No task has
  // a slot of its own, so filters, traces and counters see pieces of the range. A refused task
  // counts as failed: wait() throws an error that names the first failed task of a piece, and
  // outcome::failures counts all. If tasks do not run in this process with their memory in place
  // (sim, processes, staging::copy), the form above is used. Cost: a fifth of the instructions of
  // an empty submit.
  template <class Make>
  ticket submit_bulk(any_thread, std::size_t count, Make& make) {
    auto call = [](void* context, std::size_t i, descriptor& d) {
      detail::callable_at<Make>(context)(i, d);
    };
    return {state_,
            detail::submit_bulk_range(state_, count, call, detail::address_of_callable(make))};
  }

  // The same for tasks of one procedure whose arguments are columns: submit_bulk(count, p, 2.0f,
  // lev::each(x), lev::each(y)) has task i work with x[i] and y[i], and all with 2.0f. All tasks
  // share arguments that are no column; an output must be a column, or tasks would share it. The
  // worker that runs a piece of the bulk calls the procedure for each of its tasks, even in another
  // process. The notes on pieces above hold here, too, except that a task which fails leaves its
  // outputs as they were if arguments are copied. A task whose worker process dies is run again
  // alone; finished tasks of its piece are not. Throws lev::error naming the argument when the
  // input is refused. Cost: a few dozen instructions a task, on every machine.
  template <class... Parameters, class... Arguments>
  ticket submit_bulk(std::size_t count, procedure<void(Parameters...)> p,
                     Arguments&&... arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                  "the procedure takes another number of arguments");
    const argument packed[sizeof...(Parameters) + 1] = {
        detail::pack_part<Parameters>(static_cast<Arguments&&>(arguments))..., argument{}};
    const detail::draft d{{p.id, sizeof...(Parameters)}, packed};
    return {state_, detail::submit_columns(state_, count, d)};
  }
  // The same for a descriptor, whose columns have argument_each.
  ticket submit_bulk(std::size_t count, const descriptor& all) {
    return {state_, detail::submit_columns(state_, count, detail::draft_of(all))};
  }

  // parallel_for() runs piece_body(range) over disjoint pieces of `r`, on workers and on this
  // thread, and returns when all are done, never before. Pieces get smaller towards the end, down
  // to `grain` indices (0: chosen). The whole range is one piece, run here, if no tickets are left;
  // in a task also if the task is as deep as config::nest_max allows, or the range has at most
  // `grain` indices, or one. An empty range has no piece. Rethrows the first exception of a piece.
  // Machines that share this address space only (threads, sim).
  template <class Body>
  void parallel_for(range r, Body&& piece_body, std::uint32_t grain = 0) {
    static_assert(std::is_invocable_v<Body&, range&>,
                  "the body of parallel_for() takes a lev::range, and loops over it itself");
    auto call = [](void* context, range piece) {
      detail::callable_at<std::remove_reference_t<Body>>(context)(piece);
    };
    detail::run_loop(state_, r, grain, call, detail::address_of_callable(piece_body));
  }

  // parallel_reduce() is a parallel_for() whose pieces have values: piece_body(piece, identity)
  // returns that of a piece, and combine(left, right) puts two neighbours together. The result is
  // as if the body had been given the whole range if combine() is associative, which need not be
  // commutative, and combine(identity, x) is x: each piece begins with the identity. Where the
  // pieces begin differs from run to run, and with it the last digits of a sum of floating-point
  // numbers. Several threads call the body at once; combine() is called by this one alone, when all
  // pieces are done. An empty range gives `identity`. Rethrows what a piece throws, what copying a
  // T throws, and std::bad_alloc: a piece allocates its value.
  template <class T, class Body, class Combine>
  T parallel_reduce(range r, T identity, Body&& piece_body, Combine&& combine,
                    std::uint32_t grain = 0) {
    static_assert(std::is_invocable_v<Body&, range&, T>,
                  "the body of parallel_reduce() takes a lev::range and the value to go on from, "
                  "and returns what has become of that");
    static_assert(std::is_same_v<std::decay_t<std::invoke_result_t<Body&, range&, T>>, T>,
                  "parallel_reduce: the body returns another type than that of the identity, which "
                  "is the result's; write 0.0 for a sum of doubles");
    detail::reduced_pieces<T> pieces;
    const T& first = identity;
    const auto run = [&](range piece) {
      pieces.add(piece.begin, [&]() -> T { return piece_body(piece, T(first)); });
    };
    parallel_for(r, run, grain);
    return pieces.put_together(static_cast<T&&>(identity), combine);
  }

  // The global barrier. begin_submit() opens a phase; end_submit() says that no more tasks come
  // from outside; wait_for_completion() blocks until that was said and every task is complete.
  // Without begin/end it waits until no task is left, including those that other threads submit
  // meanwhile. There is one phase: only the last of several submitters may call end_submit().
  // Returns the first failure among released or posted tasks since the last call. Errors:
  // would_deadlock inside a task, and on `sim` if nothing can end the wait; timed_out. Paper: Jack
  // Rabbit section 4.3.
  void begin_submit() noexcept;
  void end_submit() noexcept;
  outcome wait_for_completion(std::int64_t timeout_ns = no_timeout) noexcept;

  // set_filters() replaces the filter chain, even while tasks run. Errors: too_big (more than 8),
  // bad_argument (null), would_deadlock (inside a filter or another hook).
  status set_filters(const filter* chain, std::size_t count) noexcept;
  status set_filters(std::initializer_list<filter> chain) noexcept {
    return set_filters(chain.begin(), chain.size());
  }

  // make_mutex() makes a mutex for locked tasks; too_big when all 256 are in use, bad_argument for
  // null.
  status make_mutex(mutex_id* id) noexcept;

  // close() refuses new tasks, also of submits that wait for a ticket, then drains (or, with
  // `cancel_waiting`, cancels tasks that have not started) and stops the workers. `end_running`
  // cancels, too, and on `processes` ends tasks that still run when the time is over, as
  // ticket::end() does; elsewhere bodies cannot be ended. Errors: timed_out (the runtime stays
  // closing; call again), would_deadlock inside a task, on `sim` also without a time-out when tasks
  // wait for each other. A second call is a no-op.
  status close(std::int64_t timeout_ns = no_timeout, bool cancel_waiting = false,
               bool end_running = false) noexcept {
    return end_running ? detail::close_by_force(state_, timeout_ns)
                       : detail::close_within(state_, timeout_ns, cancel_waiting);
  }

  unsigned workers() const noexcept;
  const char* machine() const noexcept;
  counters count() const noexcept;
  worker_counters count_worker(unsigned index) const noexcept;

  // now_ns() reads the machine's clock: virtual time on `sim`.
  std::uint64_t now_ns() const noexcept;
  // pass_time() lets the time of the caller's own work pass on a machine with virtual time, in
  // cycles; on others it does nothing. For a host thread; a task has this_task().pass_time().
  void pass_time(std::uint64_t cycles) noexcept;
  // trace_hash() is a hash over all turns of a `sim` runtime, with their actors and times, and over
  // its trace events, if it has a trace: equal for equal seeds. 0 on other machines without a
  // trace.
  std::uint64_t trace_hash() const noexcept;
  // write_trace() writes the events of the trace rings as Chrome/Perfetto JSON. Errors: unavailable
  // (file), not_supported (no trace).
  status write_trace(const char* path) const noexcept;

  detail::runtime_state* state() noexcept { return state_; }

 private:
  template <class... Parameters, class... Arguments>
  std::uint64_t submit_typed(const options* o, bool detached, procedure<void(Parameters...)> p,
                             Arguments&&... arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                  "the procedure takes another number of arguments");
    if constexpr (sizeof...(Parameters) == 0) {
      return submit_packed(o, detached, {{p.id}, nullptr}, detail::plain_kinds<>);
    } else {
      const argument packed[] = {
          detail::parameter<Parameters>::pack(static_cast<Arguments&&>(arguments))...};
      return submit_packed(o, detached, {{p.id, sizeof...(Parameters)}, packed},
                           detail::plain_kinds_of_call<Parameters...>(packed));
    }
  }
  [[gnu::always_inline]] std::uint64_t submit_packed(const options* o, bool detached,
                                                     const detail::draft& d,
                                                     std::uint64_t plain_kinds) {
    if (o != nullptr) return detail::submit(state_, d, o, detached);
    return detached ? detail::post_call(state_, d, plain_kinds)
                    : detail::submit_call(state_, d, plain_kinds);
  }

  detail::runtime_state* state_;
};

}  // namespace lev

#endif
