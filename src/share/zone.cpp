// The zone and its heap, whose list of blocks only the host keeps.
#include "share/zone.hpp"

#include "base/assert.hpp"
#include "base/first_constructor.hpp"
#include "base/lasting.hpp"
#include "base/numbers.hpp"
#include "base/sanitizer.hpp"
#include "share/committed.hpp"
#include "share/faults.hpp"
#include "share/heap_blocks.hpp"
#include "share/own_files.hpp"
#include "share/shortage.hpp"
#include "share/socket_name.hpp"
#include "sync/sleep_lock.hpp"
#include "sync/uncancelled.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace lev {

namespace {

constexpr std::size_t heap_bytes_max = std::size_t{64} << 30;
constexpr std::size_t heap_bytes_min = std::size_t{64} << 20;
constexpr std::size_t block_alignment = shared_alignment;
// From this size on a freed block's memory goes back to the system: a page fault costs more than
// clearing a page.
constexpr std::size_t returned_bytes_min = 8 << 20;

// Where mappings are looked for: far from where Linux puts programs, heaps, libraries and stacks,
// so that they are free in a worker process, too, whose layout is random. Each host process of a
// user has a span of its own, because a worker may serve several of them.
#if defined(LEV_UNDER_TSAN)
constexpr std::uintptr_t first_span = 0x7ea0'0000'0000;  // what ThreadSanitizer leaves free
constexpr std::uintptr_t span_bytes = std::uintptr_t{1} << 37;
constexpr unsigned span_count = 4;
#else
constexpr std::uintptr_t first_span = 0x2000'0000'0000;
constexpr std::uintptr_t span_bytes = std::uintptr_t{1} << 37;  // the heap, and as much for lanes
constexpr unsigned span_count = 384;
#endif
constexpr std::uintptr_t place_step = std::uintptr_t{1} << 22;

struct heap {
  sleep_lock<> lock;  // sections under it map files and ask the system for memory
  zone here;
  zone adopted;                 // in a worker process: the host's
  std::vector<zone> inherited;  // after forks: parents' zones, of which nothing is freed here
  pid_t owner = 0;
  int span_claim = -1;  // the socket whose name says that the span is this process's
  std::uintptr_t span = 0;
  std::uintptr_t next_place = 0;
  heap_blocks blocks;
  committed_chunks committed;
  std::size_t unlooked_bytes = 0;  // committed since the last check whether there is memory
};

// Why this thread's last request for a block failed.
thread_local char shortage_text[320];

// Always null.
[[gnu::format(printf, 1, 2)]] void* no_block(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(shortage_text, sizeof shortage_text, format, arguments);
  va_end(arguments);
  return nullptr;
}
constexpr unsigned long long in_mib(std::uint64_t bytes) noexcept {
  return (bytes >> 20) + (bytes % (1 << 20) != 0 ? 1 : 0);
}

heap& the_heap() noexcept {
  return lasting<heap>();
}

// A mapping to read is a private one: the file's pages, which no process can write to through it.
// (The watch on its holes needs that: a shared mapping of a file opened to read cannot be watched.)
void* map_fixed(std::uintptr_t address, int file, std::size_t bytes, int protection) noexcept {
  void* at = reinterpret_cast<void*>(address);
  const int sharing = (protection & PROT_WRITE) != 0 ? MAP_SHARED : MAP_PRIVATE;
  void* p = mmap(at, bytes, protection, sharing | MAP_FIXED_NOREPLACE | MAP_NORESERVE, file, 0);
  if (p != MAP_FAILED && p != at) {  // a kernel before 4.17
    munmap(p, bytes);
    errno = EEXIST;
    return nullptr;
  }
  // A core dump would go through the mapping page by page, whether anything is there or not: 64 GiB
  // in 19 s.
  if (p != MAP_FAILED && bytes >= heap_bytes_min) (void)madvise(p, bytes, MADV_DONTDUMP);
  return p == MAP_FAILED ? nullptr : p;
}

// The host's dump has what it has allocated.
void advise(const heap& h, committed_chunks::range r, int how) noexcept {
  (void)madvise(reinterpret_cast<void*>(h.here.heap_begin + r.begin_byte()), r.bytes(), how);
}

// A socket with the span's name, -1 when another process has it. The kernel takes the name back
// when the process ends, in whatever way.
int claim_span(unsigned n) noexcept {
  char which[16];
  std::snprintf(which, sizeof which, "%u", n);
  const socket_name name("span", which);
  const int file = out_of_the_way(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (file < 0 || bind(file, name.address(), name.bytes()) == 0) return file;
  close(file);
  return -1;
}

// Under the lock. If there are no sockets, or more hosts than spans, two hosts may get the same
// span. That does no harm unless they want to share workers, and then one of them is refused.
void take_span(heap& h) noexcept {
  const auto first = static_cast<unsigned>(getpid()) % span_count;
  unsigned n = first;
  for (unsigned i = 0; i < span_count && h.span_claim < 0; ++i) {
    n = (first + i) % span_count;
    h.span_claim = claim_span(n);
  }
  if (h.span_claim < 0) n = first;
  h.span = first_span + n * span_bytes;
  h.next_place = h.span;
}

// Under the lock. A place that is taken is passed over. If the system refuses for another reason,
// it would refuse the next places, too, and they would be lost: 64 of them may be two spans.
void* find_place(heap& h, int file, std::size_t bytes) noexcept {
  constexpr int tries_max = 64;
  if (h.span == 0) take_span(h);
  for (int i = 0; i < tries_max; ++i) {
    const std::uintptr_t at = h.next_place;
    void* p = map_fixed(at, file, bytes, PROT_READ | PROT_WRITE);
    if (p == nullptr && errno != EEXIST) return nullptr;
    h.next_place += round_up(bytes, place_step);
    if (p != nullptr) return p;
  }
  return nullptr;
}

// Under the lock. As large as the limit on address space allows. Throws std::bad_alloc, and has
// changed nothing then.
bool open_heap(heap& h) {
  errno = ENOMEM;
  for (std::size_t bytes = heap_bytes_max; bytes >= heap_bytes_min; bytes /= 2) {
    const int file = make_memory_file("leveret-heap", 0, may_grow);
    if (file < 0) return false;
    seal_memory_file(file, false);
    void* p = find_place(h, file, bytes);
    if (p == nullptr) {
      close(file);
      h.next_place = h.span;
      errno = ENOMEM;
      continue;
    }
    try {
      h.blocks.add(reinterpret_cast<std::uintptr_t>(p), bytes);
    } catch (const std::bad_alloc&) {
      munmap(p, bytes);
      close(file);
      throw;
    }
    h.here.heap_file = file;
    h.here.heap_begin = reinterpret_cast<std::uintptr_t>(p);
    h.here.heap_end = h.here.heap_begin + bytes;
    h.owner = getpid();
    return true;
  }
  return false;
}

// After a fork() the blocks belong to the parent, and the memory is still the parent's: the child
// gives none of it back, and makes a heap of its own. Under the lock.
void forget_parents_heap(heap& h) {
  if (h.here.heap_file < 0 || h.owner == getpid()) return;
  h.inherited.push_back(h.here);
  close(h.here.heap_file);
  if (h.span_claim >= 0) close(h.span_claim);
  h.span_claim = -1;
  h.span = 0;
  h.here = zone{};
  h.blocks.clear();
  h.committed.clear();
}

// A fork() waits until no thread is in the heap: in the child it is whole, and its lock is free.
futex_sleeper kernel;
void before_fork() noexcept {
  the_heap().lock.lock(kernel);
}
void after_fork() noexcept {
  the_heap().lock.unlock(kernel);
}
[[gnu::constructor(first_constructor)]] void watch_forks() {
  pthread_atfork(&before_fork, &after_fork, &after_fork);
}

// The modes of fallocate() to take memory, where the file may have to grow, and to return it.
constexpr int take_memory = 0;
constexpr int return_memory = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

// Asks in pieces: older kernels give up when a signal comes, for example a profiler's. Then the
// memory is requested again, in smaller pieces.
bool ask_for(const heap& h, committed_chunks::range r, int how) noexcept {
  std::size_t piece = (std::size_t{4} << 20) / committed_chunks::chunk_bytes;
  const no_write_signals guard;
  for (std::size_t at = r.begin; at < r.end;) {
    const committed_chunks::range next{at, smaller(r.end, at + piece)};
    if (fallocate(h.here.heap_file, how, static_cast<off_t>(next.begin_byte()),
                  static_cast<off_t>(next.bytes())) == 0) {
      at = next.end;
    } else if (errno == EINTR) {
      piece = larger<std::size_t>(piece / 2, 1);
    } else {
      return false;
    }
  }
  return true;
}

// Whether there is memory for the missing chunks of `all`. The kernel would give it in any case,
// and then kill processes for it. Small blocks are checked when many have come together.
bool has_memory_for(heap& h, committed_chunks::range all) noexcept {
  constexpr std::size_t looked_bytes = 16 << 20;
  using range = committed_chunks::range;
  std::size_t missing = 0;
  for (range r = h.committed.first_missing(all); !r.is_empty();
       r = h.committed.first_missing({r.end, all.end}))
    missing += r.bytes();
  h.unlooked_bytes += missing;
  if (h.unlooked_bytes < looked_bytes) return true;
  h.unlooked_bytes = 0;
  const memory_left left = find_memory_left();
  if (missing <= left.bytes) return true;
  no_block(
      "%llu MiB of shared memory need %llu MiB more than there are: %s has %llu MiB left; use "
      "less, or free some",
      in_mib(all.bytes()), in_mib(missing - left.bytes), left.where, in_mib(left.bytes));
  return false;
}

// Commits the memory of a block, so that a shortage shows here. False: there is no memory, and
// nothing has changed. Reports the last new chunks in a row, which are zero.
bool commit(heap& h, std::uintptr_t begin, std::size_t bytes, committed_chunks::range* fresh) {
  using range = committed_chunks::range;
  const range all =
      committed_chunks::around(begin - h.here.heap_begin, begin - h.here.heap_begin + bytes);
  if (!has_memory_for(h, all)) return false;
  for (range r = h.committed.first_missing(all); !r.is_empty();
       r = h.committed.first_missing({r.end, all.end})) {
    if (fault_at("host.fallocate") || !ask_for(h, r, take_memory)) {
      no_block("%llu MiB of shared memory: %s%s", in_mib(bytes), std::strerror(errno),
               next_step_of_memory(errno));
      ask_for(h, r, return_memory);  // the first pieces may be there
      for (range back = h.committed.first_missing({all.begin, r.begin}); !back.is_empty();
           back = h.committed.first_missing({back.end, r.begin}))
        ask_for(h, back, return_memory);
      return false;
    }
    *fresh = r;
  }
  h.committed.set(all);
  if (!fresh->is_empty()) advise(h, all, MADV_DODUMP);
  return true;
}

void* take_block(heap& h, std::size_t bytes, committed_chunks::range* fresh) {
  const std::uintptr_t begin = h.blocks.find(bytes);
  if (begin == 0) {
    return no_block(
        "%llu MiB of shared memory are not free in one piece: a program has %llu MiB in all; "
        "free some",
        in_mib(bytes), in_mib(h.here.heap_end - h.here.heap_begin));
  }
  if (!commit(h, begin, bytes, fresh)) return nullptr;
  h.blocks.take(begin, bytes);
  return reinterpret_cast<void*>(begin);
}

// Clears a block except for the part fresh from the system.
void clear_block(void* block, std::size_t bytes, std::uintptr_t fresh_begin,
                 std::size_t fresh_bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t end = begin + bytes;
  const std::uintptr_t first = smaller(larger(fresh_begin, begin), end);
  const std::uintptr_t last = larger(smaller(fresh_begin + fresh_bytes, end), first);
  std::memset(block, 0, first - begin);
  std::memset(reinterpret_cast<void*>(last), 0, end - last);
}

void give_block(heap& h, std::uintptr_t begin, std::size_t bytes) noexcept {
  if (bytes >= returned_bytes_min) {
    const committed_chunks::range whole =
        committed_chunks::within(begin - h.here.heap_begin, begin - h.here.heap_begin + bytes);
    if (ask_for(h, whole, return_memory)) {
      h.committed.clear(whole);
      advise(h, whole, MADV_DONTDUMP);
    }
  }
  h.blocks.give(begin);
}

}  // namespace

void* map_near(int file, std::size_t bytes) noexcept {
  heap& h = the_heap();
  const sleep_guard held(h.lock);
  return fault_at("host.map_lane") ? nullptr : find_place(h, file, bytes);
}

bool map_at(std::uintptr_t address, int file, std::size_t bytes, bool writable) noexcept {
  return map_fixed(address, file, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ) != nullptr;
}

const zone* open_zone() noexcept try {
  heap& h = the_heap();
  const sleep_guard held(h.lock);
  forget_parents_heap(h);
  if (h.here.heap_file < 0 && !open_heap(h)) return nullptr;
  return &h.here;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void adopt_zone(std::uintptr_t begin, std::uintptr_t end) noexcept {
  heap& h = the_heap();
  const sleep_guard held(h.lock);
  h.adopted.heap_begin = begin;
  h.adopted.heap_end = end;
}

namespace {

void* allocate(std::size_t bytes, bool is_cleared) noexcept try {
  shortage_text[0] = 0;
  if (bytes == 0) return nullptr;
  if (bytes > heap_bytes_max)
    return no_block("%llu MiB of shared memory: a program has at most %llu MiB; use less",
                    in_mib(bytes), in_mib(heap_bytes_max));
  const uncancelled now;
  if (open_zone() == nullptr)
    return no_block("there is no shared memory: %s%s", std::strerror(errno),
                    next_step_of_memory(errno));
  heap& h = the_heap();
  void* block = nullptr;
  committed_chunks::range fresh;
  std::uintptr_t heap_begin = 0;
  bytes = round_up(bytes, block_alignment);
  {
    const sleep_guard held(h.lock);
    block = take_block(h, bytes, &fresh);
    heap_begin = h.here.heap_begin;
  }
  if (block != nullptr && is_cleared)
    clear_block(block, bytes, heap_begin + fresh.begin_byte(), fresh.bytes());
  return block;
} catch (const std::bad_alloc&) {
  return no_block("no memory for the list of shared memory");
}

}  // namespace

const char* shared_shortage() noexcept {
  return shortage_text;
}

void* shared_allocate(std::size_t bytes) noexcept {
  return allocate(bytes, true);
}

void* shared_allocate_for_overwrite(std::size_t bytes) noexcept {
  return allocate(bytes, false);
}

namespace {

// Under the lock.
bool is_of_another_process(const heap& h, std::uintptr_t address) noexcept {
  if (h.owner != getpid() || h.adopted.holds(address, 1)) return true;
  for (const zone& z : h.inherited) {
    if (z.holds(address, 1)) return true;
  }
  return false;
}

}  // namespace

void shared_free(void* block) noexcept try {
  if (block == nullptr) return;
  const uncancelled now;
  heap& h = the_heap();
  const sleep_guard held(h.lock);
  forget_parents_heap(h);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t used = h.blocks.used(address);
  if (used == 0 && is_of_another_process(h, address)) return;
  LEV_EXPECTS(
      used != 0,
      "shared_free() was given what is no block of shared_allocate(), or one that was freed "
      "before; free each block once, by the address it was given out with");
  give_block(h, address, used);
} catch (const std::bad_alloc&) {
  // In a child of fork(): the heap's list of parents found no room, and nothing was freed.
}

bool is_shared(const void* data, std::size_t bytes) noexcept {
  heap& h = the_heap();
  const sleep_guard held(h.lock);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  // In a child of fork() the heap may be the parent's still, which no worker of the child's has.
  const bool is_here = h.here.holds(address, bytes) && h.owner == getpid();
  return is_here || h.adopted.holds(address, bytes);
}

}  // namespace lev
