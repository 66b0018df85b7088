// obituaries: what worker processes leave of themselves when they die, for leveret.ProcessExecutor.
//
// Each worker has a page of its own (leveret/wire/page.py has its layout): memory in which it marks
// the call that it is in, and where its last words go. When it is dead the runtime's own thread
// takes them from there, before the next process uses the page, and a thread with the GIL reads
// them.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <leveret/leveret.hpp>

namespace lev::python {

namespace nb = nanobind;

class call_port;

// The layout of a page; wire/page.py has the same numbers, and a test compares them.
struct page {
  static constexpr std::size_t head_bytes = 2048;
  static constexpr std::size_t kept_bytes = 512;  // of the head: what a successor goes on with
  static constexpr std::size_t signal_at = 512;   // 4 bytes: written by a signal handler
  static constexpr std::size_t used_at = 520;     // 8 bytes: of the notes
  static constexpr std::size_t call_at = 528;     // 8 bytes: the call that the worker is in, or 0
  static constexpr std::size_t text_at = 64 << 10;
  static constexpr std::size_t bytes = 128 << 10;
  static_assert(head_bytes < text_at && text_at < bytes && used_at + 8 <= head_bytes);
};

class obituaries {
 public:
  // `pages`: one for each worker, writable memory of page::bytes.
  explicit obituaries(nb::list pages);
  ~obituaries();
  obituaries(obituaries&&) = delete;

  death_hook hook() noexcept { return {&obituaries::on_death, this}; }
  // The port whose courier is called when somebody has died; null: none, or none any more.
  void tell(call_port* port) noexcept;
  bool has_any() const noexcept { return has_any_.load(std::memory_order_relaxed); }
  // take() returns (worker, how, head, notes, text) of each death since the last call; with the
  // GIL.
  nb::list take();
  // close() gives the pages back; the runtime must be closed. With the GIL.
  void close() noexcept;

 private:
  struct death {
    int worker;
    int how;
    std::string head, notes, text;
  };

  static void on_death(void* self, int worker, int how) noexcept;
  void read(int worker, int how);

  std::vector<Py_buffer> pages_;
  std::mutex mutex_;
  std::vector<death> deaths_;  // guarded by mutex_
  call_port* port_ = nullptr;  // guarded by mutex_
  // Whether deaths_ is not empty. Written with mutex_; read by threads with the GIL and the
  // courier, as a hint: they take the mutex to look. Publishes nothing.
  std::atomic<bool> has_any_{false};
};

}  // namespace lev::python
