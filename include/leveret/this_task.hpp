// Inside a task: data found on the way, waiting without idling, threads of its own.
//
//   void walk(lev::far<const node> list, std::uint32_t first, lev::result<int> length) {
//     auto task = lev::this_task();
//     int n = 0;
//     for (std::uint32_t i = first; i != end; ++n) {
//       const node* p = task.get(list, i);   // on its way
//       task.wait();                         // other tasks of this worker run meanwhile
//       i = p->next;
//     }
//     length = n;
//   }
//
// A worker holds up to config::contexts contexts, each with a task under way. A task that waits
// gives way to the next one, round robin, so that others use the time that memory takes. The code
// of a task stays the same.
//
// Paper: CellMT, sections 3 and 4 (cooperative threads in an SPU that switch where the DMA would
// be waited for).
#ifndef LEVERET_THIS_TASK_HPP
#define LEVERET_THIS_TASK_HPP

#include <leveret/args.hpp>

#include <cstdint>
#include <exception>
#include <utility>

namespace lev {

// A worker holds at most so many contexts (CellMT, section 3.1), and each task has so many tags.
constexpr unsigned contexts_max = 16;
constexpr unsigned task_tags = 16;

struct contexts;

// A flow of control started by task_context::spawn(). The base of thread_of, which holds its
// function.
class task_thread {
 public:
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  bool is_done() const noexcept { return is_done_; }
  // join() returns when the function has returned; rethrows its exception, once.
  void join() {
    await();
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  // id() is the number of its context, as task_context::id() says inside of it.
  unsigned id() const noexcept { return id_; }

  // For the runtime: runs the function, keeps its exception.
  void run() noexcept;

 protected:
  explicit task_thread(void (*call)(task_thread&)) noexcept : call_(call) {}
  ~task_thread() = default;
  void await() noexcept;

 private:
  friend class task_context;
  friend bool start_thread(contexts&, task_thread&) noexcept;

  void (*call_)(task_thread&);
  contexts* contexts_ = nullptr;
  unsigned id_ = 0;
  bool is_done_ = false;
  std::exception_ptr failure_;
};

// thread_of<F> is returned by spawn(). Its destructor joins, dropping the function's exception.
template <class F>
class thread_of final : public task_thread {
 public:
  // For spawn().
  template <class Task>
  thread_of(F f, Task& task) : task_thread(&call), function_(std::move(f)) {
    task.start(*this);
  }
  ~thread_of() { await(); }

 private:
  static void call(task_thread& self) { static_cast<thread_of&>(self).function_(); }
  F function_;
};

// The running task, as its own body sees it: a small handle, to be used by the thread of control
// that asked for it or by one it spawned.
//
// Thread safety: none needed; everything happens on the task's worker, one context at a time.
class task_context {
 public:
  // get() starts the transfer of `count` elements from `first` on, and returns where they will be;
  // they are there when wait(tag) returned. Where tasks work in place (threads, by default) that is
  // the caller's memory itself, on its way into the cache. Elsewhere it is a buffer in the local
  // store, one for each tag, which stays until the next get() under the same tag or the end of the
  // task. Throws lev::error: bad_range (not all of it was declared), bad_argument (tag of 16 or
  // more), out_of_memory.
  template <class T>
  T* get(const far<T>& from, std::size_t first, std::size_t count = 1, unsigned tag = 0) {
    if (first > from.size() || count > from.size() - first) refuse_range(first, count, from.size());
    return static_cast<T*>(const_cast<void*>(
        start_get(from.data_ + first, count * sizeof(T), from.size() * sizeof(T), tag)));
  }

  // put() starts the way back: `count` elements from `values` on, which a get() returned or which
  // lie anywhere in the task, go to `first` and following. They must stay as they are until
  // wait(tag) returned. If get() returned the caller's memory itself, there is nothing to do.
  // Throws as get() does.
  template <class T>
  void put(const far<T>& to, std::size_t first, std::size_t count, const T* values,
           unsigned tag = 0) {
    static_assert(!std::is_const_v<T>, "this far memory was declared as const: it is only read");
    if (first > to.size() || count > to.size() - first) refuse_range(first, count, to.size());
    if (to.data_ + first != values || tag >= task_tags)
      start_put(to.data_ + first, values, count * sizeof(T), tag);
  }

  // wait() returns when everything under the tag has arrived; others run meanwhile. It returns at
  // once if nothing was started under the tag. wait_all() takes one bit for each tag. Throws
  // lev::error: bad_argument (tag of 16 or more).
  void wait(unsigned tag = 0);
  void wait_all(std::uint32_t tags);

  // yield() lets the worker's other contexts run until their next wait. Cost: see bench switch.
  void yield() noexcept;

  // wait_until() yields until ready() is true: for any other condition. It polls, so the worker
  // does not sleep meanwhile.
  template <class Ready>
  void wait_until(Ready&& ready) {
    while (!ready()) yield();
  }

  // pass_time() lets the time of a computation pass on a machine with virtual time, in cycles; on
  // others it does nothing. For a task that computes between transfers; the time of the procedure's
  // cost hook passes before the body starts.
  void pass_time(std::uint64_t cycles) noexcept;

  // spawn() starts f() on another context of this worker, inside this task. It runs when this
  // thread of control waits, yields or joins. The destructor of the returned object joins. Throws
  // lev::error: too_many_contexts (all are in use, or config::contexts is 1), out_of_memory.
  template <class F>
  thread_of<F> spawn(F f) {
    return thread_of<F>(std::move(f), *this);
  }

  // id() is the number of the context this runs on: 0 is the worker's own stack.
  unsigned id() const noexcept;
  // stack_left() is the number of bytes free on its stack below the caller; 0: unknown.
  std::size_t stack_left() const noexcept;

 private:
  friend task_context this_task();
  template <class F>
  friend class thread_of;
  explicit task_context(contexts* c) noexcept : contexts_(c) {}

  [[noreturn]] static void refuse_range(std::size_t first, std::size_t count, std::size_t size);
  const void* start_get(const void* from, std::size_t bytes, std::size_t from_bytes, unsigned tag);
  void start_put(void* to, const void* values, std::size_t bytes, unsigned tag);
  void start(task_thread& t);

  contexts* contexts_;
};

// this_task() is the task that calls it. Throws lev::error: not_in_task (the caller is not run by a
// worker, or is in a filter or a hook), out_of_memory.
task_context this_task();

namespace detail {

// stay_on_stack() is for language bindings: the task that runs here, if there is one, is in the
// middle of an interpreter that has one stack of calls for each thread. From here on its worker
// does not leave it while it waits: only what it waits for, and its children, run on top. A wait is
// refused (would_deadlock) where nothing has run for a second.
void stay_on_stack() noexcept;
// is_in_task() tells whether the caller is in a task's body or a callback: its worker does nothing
// else until that waits or ends.
bool is_in_task() noexcept;
// is_in_virtual_task() tells whether the caller is in a task's body in virtual time: all workers
// there are one thread, and any call may have another one go on.
bool is_in_virtual_task() noexcept;

}  // namespace detail
}  // namespace lev

#endif
