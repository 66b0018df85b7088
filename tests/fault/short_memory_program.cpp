// A host for which operator new fails at its N-th call, once or from then on: it gets right results
// or errors, and goes on when there is memory again. See short_memory_test.cpp.
//
//   short_memory_program MACHINE N once|always    ends with 0 (it went on), 2 (it was not opened),
//                                                 or says what was wrong
//   short_memory_program MACHINE count            says how many calls there are without a failure
#include <leveret/leveret.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace {

constexpr long never = -1;
std::atomic<long> calls_left{never};
std::atomic<bool> fails_always{false};
std::atomic<long> calls{0};

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  ++calls;
  const long left = calls_left;
  if (left > 0) calls_left = left - 1;
  if (left == 0) {
    if (!fails_always) calls_left = never;
    return nullptr;
  }
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}
void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  void* p = take(bytes, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t n) {
  return take_or_throw(n, usual);
}
void* operator new[](std::size_t n) {
  return take_or_throw(n, usual);
}
void* operator new(std::size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return take(n, usual);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return take(n, usual);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace {

const auto add =
    lev::define("short.add", [](std::uint64_t a, lev::result<std::uint64_t> sum) { sum = a + 1; });
const auto increment = lev::define("short.increment", [](lev::inout<std::uint64_t> x) {
  for (std::uint64_t& v : x) ++v;
});
const auto throws = lev::define("short.throws", [] { throw std::runtime_error("on purpose"); });
const auto dies = lev::define("short.dies", [] { _exit(7); });

std::uint64_t words[1024];

const auto fetches = lev::define("short.fetches", [](std::uint64_t first) {
  lev::this_task().get(lev::far<std::uint64_t>(words, 1024), first, 1, 0);
});

using act = void (*)(lev::runtime&);
const act acts[] = {
    [](lev::runtime& r) {
      static std::uint64_t sum = 0;
      lev::ticket t = r.submit(add, std::uint64_t{1}, sum);
      t.then([](void*) {}, nullptr);
      t.wait();
    },
    [](lev::runtime& r) {
      r.submit(lev::options().grain(16), increment, lev::sliced(words)).wait();
    },
    [](lev::runtime& r) { r.submit_bulk(500, increment, lev::each(words, 1)).wait(); },
    [](lev::runtime& r) { r.submit(throws).wait(); },
    [](lev::runtime& r) { r.submit(fetches, std::uint64_t{0}).wait(); },
    [](lev::runtime& r) { r.parallel_for({0, 1000}, [](lev::range) {}); },
    [](lev::runtime& r) {
      r.submit_bulk(64, [](std::size_t i, lev::descriptor& d) {
         d = lev::pack(increment, lev::strided(words + i * 16, 2, 4, 8));
       }).wait();
    },
    [](lev::runtime& r) {
      if (std::strcmp(r.machine(), "processes") == 0) r.submit(dies).wait();
    },
    [](lev::runtime&) { lev::shared_array<char>{100'000}; },
};

int session(const char* machine) {
  lev::config c;
  c.machine = machine;
  c.workers = 2;
  c.tickets = 256;
  bool is_open = false;
  try {
    lev::runtime r(c);
    is_open = true;
    for (const act each : acts) {
      try {
        each(r);
      } catch (const std::exception&) {  // lev::error, what a body threw, std::bad_alloc
      }
    }
    calls_left = never;
    std::uint64_t sum = 0;
    r.submit(add, std::uint64_t{1}, sum).wait();
    lev::shared_array<std::uint64_t> shared(1000);
    r.submit(increment, shared).wait();
    if (sum != 2 || shared[999] != 1) return 3;
    return r.close() == lev::status::ok ? 0 : 4;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return is_open ? 5 : 2;
  }
}

}  // namespace

int main(int count, char** arguments) {
  alarm(30);
  if (count < 3) return 99;
  if (std::strcmp(arguments[2], "count") == 0) {
    const int how = session(arguments[1]);
    std::printf("%ld\n", calls.load());
    return how;
  }
  fails_always = count > 3 && std::strcmp(arguments[3], "always") == 0;
  calls_left = std::atol(arguments[2]);
  return session(arguments[1]);
}
