// Blocks of shared memory as Python objects, with the buffer protocol.
//
// Blocks that are dropped are kept for the next one of their size, up to a bound: making one costs
// the system's clearing of its pages.
#pragma once

#include <cstddef>

namespace lev::python {

class shared_block {
 public:
  static constexpr const char* python_name = "SharedBlock";
  // Raises OutOfMemory. The bytes are zero if `is_cleared`, else anything. is_array: it is that of
  // an array which calls use in place; what is in others is copied for them.
  shared_block(std::size_t bytes, bool is_cleared, bool is_array);
  ~shared_block();
  shared_block(shared_block&&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool is_array() const noexcept { return is_array_; }

 private:
  void* data_;
  std::size_t bytes_;
  unsigned forks_;  // fork_count() of the process whose heap it is in
  bool is_array_;
};

// forget_kept_blocks() is for a child of fork(): they are in the parent's heap, which goes on using
// them.
void forget_kept_blocks() noexcept;

}  // namespace lev::python
