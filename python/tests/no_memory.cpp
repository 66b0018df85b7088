// Preloaded by test_no_memory.py: the n-th allocation of a thread fails. And a task that can wait.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

static thread_local long left = 0;  // until the one that fails; 0: none does
static std::atomic<bool> is_open{false};

extern "C" void fail_at(long n) {
  left = n;
}

extern "C" void open_gate(int opens) {
  is_open = opens != 0;
  is_open.notify_all();
}

extern "C" void writes_later(double* x) {
  is_open.wait(false);
  *x = 1;
}

void* operator new(std::size_t bytes) {
  if (left != 0 && --left == 0) throw std::bad_alloc();
  if (void* made = std::malloc(bytes == 0 ? 1 : bytes)) return made;
  throw std::bad_alloc();
}

void operator delete(void* made) noexcept {
  std::free(made);
}

void operator delete(void* made, std::size_t) noexcept {
  std::free(made);
}
