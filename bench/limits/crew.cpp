// A static loop over all cores, and the memory copy made of it.
#include "limits/crew.hpp"

#include "timing.hpp"

#include <cstring>

namespace bench {

crew::crew(std::size_t thread_count) : size_(thread_count) {
  for (std::size_t i = 1; i < size_; ++i) threads_.emplace_back([this, i] { serve(i); });
}

crew::~crew() {
  body_ = nullptr;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void crew::run_part(std::size_t index) const {
  (*body_)(count_* index / size_, count_ * (index + 1) / size_);
}

void crew::split(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body) {
  const pinned here(usable_cores()[0]);
  count_ = count;
  body_ = &body;
  running_.store(static_cast<std::uint32_t>(size_ - 1));
  epoch_.fetch_add(1);
  epoch_.notify_all();
  run_part(0);
  while (running_.load() != 0) {
  }
}

void crew::serve(std::size_t index) {
  pin_this_thread(usable_cores()[index % usable_cores().size()]);
  for (std::uint32_t seen = 0;; ++seen) {
    epoch_.wait(seen);
    if (body_ == nullptr) return;
    run_part(index);
    running_.fetch_sub(1);
  }
}

double copy_gbps(crew& threads, char* to, const char* from, std::size_t bytes) {
  const std::uint64_t start_ns = now_ns();
  threads.split(bytes, [=](std::size_t begin, std::size_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
  return 2.0 * static_cast<double>(bytes) / static_cast<double>(now_ns() - start_ns);
}

}  // namespace bench
