// What a task needs kept while it is under way: exported buffers, and memory for its results.
//
// Everything here is touched with the GIL held, but `next`: the thread that completes the task
// links the hold into its session's list of finished ones, without the GIL, and the next Python
// call takes the list (session::collect).
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "bell.hpp"
#include "buffers.hpp"
#include "view.hpp"

namespace lev::python {

class session;

class hold {
 public:
  hold(session* owner, std::size_t buffers_max) : owner_(owner) { buffers_.reserve(buffers_max); }
  ~hold() { release_buffers(); }
  hold(hold&&) = delete;

  // open() exports a buffer for as long as the task runs. The Py_buffer does not move: exporters
  // may point into it.
  const Py_buffer& open(nb::handle array, const place& where) {
    Py_buffer view;
    open_buffer(array, where, &view);
    buffers_.push_back(view);
    if (view.shape == &view.len) buffers_.back().shape = &buffers_.back().len;
    if (view.strides == &view.itemsize) buffers_.back().strides = &buffers_.back().itemsize;
    return buffers_.back();
  }

  // release_buffers() ends the exports; the task must be complete.
  void release_buffers() noexcept { release_all(buffers_); }

  // make_results() reserves `tasks` values for each result of the procedure, one array after the
  // other. It throws bad_alloc for more than any memory has, too.
  void make_results(const plan& p, std::size_t tasks) {
    if (tasks > std::size_t{1} << 48) throw std::bad_alloc();  // the products below would wrap
    std::size_t words = 0;
    for (const slot& s : p.slots) {
      if (s.what != kind::result) continue;
      offsets_.push_back(words);
      words += (tasks * s.type.bytes + 15) / 16 * 2;
    }
    results_ = std::make_unique<std::uint64_t[]>(words);
  }
  char* result(std::size_t index) noexcept {
    return reinterpret_cast<char*>(results_.get() + offsets_[index]);
  }

  // make_words() reserves a column of values, which stays as it is while the tasks run.
  std::uint64_t* make_words(std::size_t count) {
    words_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(count));
    return words_.back().get();
  }

  bool is_empty() const noexcept { return buffers_.empty() && offsets_.empty() && words_.empty(); }

  session* owner() noexcept { return owner_; }
  chimes& awaited() noexcept { return awaited_; }
  void add_user() noexcept { ++users_; }
  void drop_user() noexcept {
    if (--users_ == 0) delete this;
  }

  hold* next = nullptr;  // in the session's list; written by the completing thread before it
                         // publishes the hold

 private:
  session* owner_;
  chimes awaited_;  // by coroutines
  int users_ = 0;   // the ticket, the completion and result arrays
  std::vector<Py_buffer> buffers_;
  std::vector<std::size_t> offsets_;
  std::unique_ptr<std::uint64_t[]> results_;
  std::vector<std::unique_ptr<std::uint64_t[]>> words_;
};

}  // namespace lev::python
