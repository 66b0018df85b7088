// Confined bodies that want more memory than they may have: their own, by every way there is, and
// the host's, by reading what is not there.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "fault/hostile.hpp"
#include "share/zone.hpp"

namespace lev::test {

namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t limit_bytes = 64 * mib;

class confined_memory : public testing::Test {
 protected:
  void SetUp() override { start_alarm(); }
  void TearDown() override { alarm(0); }
  static config settings() {
    config c = settings_at(isolation::confined);
    c.processes.worker_bytes_max = limit_bytes;
    return c;
  }
};

TEST_F(confined_memory, a_limit_that_leaves_no_memory_to_begin_is_not_taken_for_threads) {
  config c = settings();
  c.processes.worker_bytes_max = 1;
  try {
    runtime r(c);
  } catch (const error& e) {
    EXPECT_EQ(std::string(e.what()).find("one thread"), std::string::npos) << e.what();
  }
}

// --- Its own -----------------------------------------------------------------------------------

// Returns what mmap() answers, 0 or errno; if it is 0, each page is written to, or read where the
// protection allows no more.
int map_and_touch(std::uint64_t bytes, int protection, int flags) {
  auto* p = static_cast<volatile char*>(
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0));
  if (p == MAP_FAILED) return errno;
  for (std::uint64_t at = 0; at < bytes; at += page) {
    if ((protection & PROT_WRITE) != 0) p[at] = 1;
    if (protection == PROT_READ && p[at] != 0) return -1;
  }
  return 0;
}

const auto map_procedure =
    define("fault.map", [](std::uint64_t bytes, int protection, int flags, result<int> got) {
      got = map_and_touch(bytes, protection, flags);
    });

TEST_F(confined_memory, mappings_of_every_kind_are_limited) {
  runtime r(settings());
  constexpr int read_write = PROT_READ | PROT_WRITE;
  for (const int flags : {0, MAP_NORESERVE, MAP_STACK, MAP_POPULATE}) {
    int got = -1;
    ASSERT_EQ(r.submit(map_procedure, 8 * mib, read_write, flags, got).wait_outcome().code,
              status::ok);
    EXPECT_EQ(got, 0) << flags;
    ASSERT_EQ(r.submit(map_procedure, 512 * mib, read_write, flags, got).wait_outcome().code,
              status::ok);
    EXPECT_EQ(got, ENOMEM) << flags;
  }
  // Pages that may not be written to take no memory, but the tables that lead to them do.
  for (const int protection : {PROT_NONE, PROT_READ}) {
    int got = -1;
    ASSERT_EQ(r.submit(map_procedure, 512 * mib, protection, 0, got).wait_outcome().code,
              status::ok);
    EXPECT_EQ(got, ENOMEM) << protection;
  }
  EXPECT_EQ(r.count().deaths, 0u);
  close_and_check(r);
}

TEST_F(confined_memory, mappings_that_no_limit_counts_are_refused) {
  runtime r(settings());
  for (const int flags : {MAP_GROWSDOWN, MAP_LOCKED, MAP_HUGETLB, MAP_GROWSDOWN | MAP_STACK}) {
    int got = -1;
    const outcome o = r.submit(map_procedure, mib, PROT_READ | PROT_WRITE, flags, got)
                          .wait_outcome(wait_limit_ns);
    EXPECT_EQ(o.code, status::poison) << flags;
    EXPECT_NE(text_of(o).find("SIGSYS"), std::string::npos) << text_of(o);
  }
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

// Pieces of everything, until there is no more of anything: how many MiB were written to.
const auto take_all_procedure = define("fault.take_all", [](result<std::uint64_t> taken) {
  std::uint64_t sum = 0;
  for (const int flags : {0, MAP_STACK, MAP_NORESERVE}) {
    while (map_and_touch(mib, PROT_READ | PROT_WRITE, flags) == 0) ++sum;
  }
  while (char* p = static_cast<char*>(std::malloc(mib))) std::memset(p, 1, mib), ++sum;
  while (void* p = sbrk(mib)) {
    if (p == reinterpret_cast<void*>(-1)) break;
    std::memset(p, 1, mib);
    ++sum;
  }
  for (;;) {  // to read only, and then to write
    void* p = mmap(nullptr, mib, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p, mib, PROT_READ | PROT_WRITE) != 0) break;
    std::memset(p, 1, mib);
    ++sum;
  }
  taken = sum;
});

TEST_F(confined_memory, all_ways_together_give_no_more_than_the_limit) {
  runtime r(settings());
  std::uint64_t taken = 0;
  ASSERT_EQ(r.submit(take_all_procedure, taken).wait_outcome(wait_limit_ns).code, status::ok);
  EXPECT_GT(taken, limit_bytes / mib / 2);
  EXPECT_LE(taken, limit_bytes / mib);
  close_and_check(r);
}

// Not a tail call: each frame is on the stack until the last one has returned.
[[gnu::noinline]] std::uint64_t descend(std::uint64_t bytes) {
  volatile char frame[64 << 10];
  for (std::size_t i = 0; i < sizeof frame; i += page) frame[i] = 1;
  return bytes <= sizeof frame ? frame[0] : descend(bytes - sizeof frame) + frame[page];
}
const auto descend_procedure = define(
    "fault.descend", [](std::uint64_t bytes, result<std::uint64_t> got) { got = descend(bytes); });

TEST_F(confined_memory, the_stack_is_limited) {
  rlimit before{};
  getrlimit(RLIMIT_STACK, &before);
  rlimit large = before;
  large.rlim_cur = before.rlim_max == RLIM_INFINITY ? 1024 * mib : before.rlim_max;
  if (large.rlim_cur < 512 * mib) GTEST_SKIP() << "this user's stacks are small anyway";
  setrlimit(RLIMIT_STACK, &large);
  runtime r(settings());
  std::uint64_t got = 0;
  EXPECT_EQ(r.submit(descend_procedure, 8 * mib, got).wait_outcome(wait_limit_ns).code, status::ok);
  const outcome o = r.submit(descend_procedure, 256 * mib, got).wait_outcome(wait_limit_ns);
  EXPECT_EQ(o.code, status::poison);
  EXPECT_NE(text_of(o).find("SIGSEGV"), std::string::npos) << text_of(o);
  close_and_check(r);
  setrlimit(RLIMIT_STACK, &before);
}

// A mapping is neither moved nor made larger: not that of a stack, which would not be counted, nor
// that of the heap, which would not be watched.
const auto remap_procedure = define("fault.remap", [](in<int> shared, out<int> got) {
  char local = 0;
  const void* const places[] = {&local, shared.data()};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(places[i]) / page * page;
    got[i] = mremap(reinterpret_cast<void*>(at), page, 512 * mib, MREMAP_MAYMOVE) == MAP_FAILED
                 ? errno
                 : 0;
  }
  // realloc() does without.
  auto* v = static_cast<unsigned*>(std::malloc(mib));
  std::iota(v, v + mib / sizeof *v, 0u);
  v = static_cast<unsigned*>(std::realloc(v, 16 * mib));
  got[2] = 0;
  for (unsigned i = 0; i < mib / sizeof *v; ++i) got[2] += v[i] != i;
  std::free(v);
});

TEST_F(confined_memory, mappings_do_not_move) {
  runtime r(settings());
  shared_array<int> x(1024);
  int got[3] = {-1, -1, -1};
  ASSERT_EQ(r.submit(remap_procedure, x, got).wait_outcome(wait_limit_ns).code, status::ok);
  EXPECT_EQ(got[0], ENOMEM);
  EXPECT_EQ(got[1], ENOMEM);
  EXPECT_EQ(got[2], 0) << "realloc() lost something";
  close_and_check(r);
}

// --- The host's --------------------------------------------------------------------------------

bool can_be_read(std::uintptr_t address) {
  if (sigsetjmp(after_fault, 1) != 0) return false;
  [[maybe_unused]] const char c = *reinterpret_cast<const volatile char*>(address);
  return true;
}

// How many of the places of [begin, end), `step` bytes apart, can be read.
std::uint64_t count_readable(std::uintptr_t begin, std::uintptr_t end, std::uint64_t step) {
  std::uint64_t count = 0;
  for (std::uintptr_t at = begin; at < end; at += step) count += can_be_read(at);
  return count;
}

// Reads the heap, the first `dense` bytes of it page by page, by itself and by system calls.
// MADV_POPULATE_READ, MADV_COLLAPSE and others are not to be had. If this should succeed, it takes
// 128 MiB and not all that the machine has.
const auto read_heap = define("fault.read_heap", [](std::uint64_t begin, std::uint64_t bytes,
                                                    std::uint64_t dense, out<std::uint64_t> got) {
  std::signal(SIGBUS, [](int) { siglongjmp(after_fault, 1); });
  std::signal(SIGSEGV, [](int) { siglongjmp(after_fault, 1); });
  got[0] = count_readable(begin, begin + dense, page);
  got[1] = count_readable(begin + dense, begin + bytes, 4 * mib);
  got[2] = 0;
  for (int advice = 0; advice < 128; ++advice)
    got[2] += madvise(reinterpret_cast<void*>(begin), dense, advice) == 0;
  got[3] = mprotect(reinterpret_cast<void*>(begin), dense, PROT_READ | PROT_WRITE) == 0 ? 0u : 1u;
  for (std::uint64_t at = begin; at < begin + dense; at += page)
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, at, nullptr, 8);  // the kernel reads there
  got[4] = count_readable(begin, begin + dense, page);
});

std::int64_t heap_pages() {
  struct stat about{};
  EXPECT_EQ(fstat(open_zone()->heap_file, &about), 0);
  return about.st_blocks * 512 / static_cast<std::int64_t>(page);
}

bool can_watch_holes() {
  const long file = syscall(SYS_userfaultfd, 1);
  if (file >= 0) close(static_cast<int>(file));
  return file >= 0;
}

TEST_F(confined_memory, reading_shared_memory_takes_none) {
  runtime r(settings());
  const zone heap = *open_zone();
  shared_array<char> first(page);
  if (can_watch_holes()) {
    shared_array<char> middle(32 * mib);
    shared_array<char> last(page);
    middle = shared_array<char>(page);  // what is given back is a hole with memory on both sides
  }
  const std::int64_t before = heap_pages();
  std::uint64_t got[5] = {};
  const outcome o = r.submit(read_heap, std::uint64_t{heap.heap_begin},
                             std::uint64_t{heap.heap_end - heap.heap_begin}, 64 * mib, got)
                        .wait_outcome(wait_limit_ns);
  ASSERT_EQ(o.code, status::ok) << text_of(o);
  EXPECT_EQ(heap_pages(), before) << "pages were allocated";
  EXPECT_GT(got[0], 0u);
  EXPECT_EQ(static_cast<std::int64_t>(got[0]), before) << "what is there can be read";
  EXPECT_EQ(got[1], 0u);
  EXPECT_EQ(got[3], 1u);
  EXPECT_EQ(got[4], got[0]);
  close_and_check(r);
  EXPECT_EQ(heap_pages(), before);
}

// As in a container whose profile has no userfaultfd: in this process, and in all that it starts.
bool refuse_userfaultfd() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// The exit status of a host of that kind: 0, or which of its expectations failed.
int life_without_userfaultfd(const config& c) {
  if (!refuse_userfaultfd() || can_watch_holes()) return 1;
  runtime r(c);
  const zone heap = *open_zone();
  shared_array<char> middle(32 * mib);
  shared_array<char> last(page);
  middle = shared_array<char>(page);
  const std::int64_t before = heap_pages();
  std::uint64_t got[5] = {};
  if (r.submit(read_heap, std::uint64_t{heap.heap_begin},
               std::uint64_t{heap.heap_end - heap.heap_begin}, 64 * mib, got)
          .wait_outcome(wait_limit_ns)
          .code != status::ok)
    return 2;
  if (got[1] != 0) return 3;  // something is behind the file's end
  const auto most = before + static_cast<std::int64_t>(32 * mib / page);
  if (heap_pages() > most || static_cast<std::int64_t>(got[4]) > most) return 4;
  return got[3] == 1 && r.close(wait_limit_ns) == status::ok ? 0 : 5;
}

TEST_F(confined_memory, without_userfaultfd_no_more_than_was_there_comes_back) {
  const pid_t host = fork();
  if (host == 0) _exit(life_without_userfaultfd(settings()));
  int how = -1;
  waitpid(host, &how, 0);
  EXPECT_TRUE(WIFEXITED(how));
  EXPECT_EQ(WEXITSTATUS(how), 0);
}

const auto sum_procedure = define("fault.sum", [](in<int> x, result<std::int64_t> sum) {
  sum = std::accumulate(x.begin(), x.end(), std::int64_t{0});
});

// --- The store ---------------------------------------------------------------------------------

// Adds the index to each element; dies at one of 777.
const auto add_index_procedure =
    define("fault.add_index", [](range indices, in<int> one, inout<int> x) {
      for (std::size_t i = 0; i < indices.size(); ++i) {
        if (x.row(i)[0] == 777) raise(SIGKILL);
        x.row(i)[0] += static_cast<int>(indices.begin + i) * one[0];
      }
    });

// No tickets are free for the pieces of tasks that are larger than the store.
TEST_F(confined_memory, more_than_a_store_without_tickets_goes_in_parts) {
  for (const staging how : {staging::automatic, staging::copy, staging::in_place}) {
    config c = settings();
    c.staging = how;
    c.tickets = 8;
    c.workers = 2;
    c.local_store_bytes = 4096;
    runtime r(c);
    constexpr std::size_t rows = 10'000, apart = 3;
    std::vector<std::vector<int>> x(c.tickets, std::vector<int>(rows * apart, 5));
    std::vector<ticket> t;
    const int one[] = {1};
    for (std::vector<int>& all : x)
      t.push_back(r.submit(add_index_procedure, range{0, rows}, one,
                           sliced(strided(all.data(), rows, 1, apart))));
    for (ticket& of : t) EXPECT_EQ(of.wait_outcome(wait_limit_ns).code, status::ok);
    for (const std::vector<int>& all : x) {
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], 5 + (i % apart == 0 ? static_cast<int>(i / apart) : 0)) << i;
    }
    EXPECT_EQ(r.count().deaths, 0u);
    close_and_check(r);
  }
}

const auto add_one_procedure = define("fault.add_one", [](inout<int> x) {
  for (int& element : x) {
    if (element == 777) raise(SIGKILL);
    ++element;
  }
});

TEST_F(confined_memory, an_element_at_fault_behind_such_parts_is_found) {
  config c = settings();
  c.tickets = 8;
  c.local_store_bytes = 4096;
  runtime r(c);
  constexpr std::size_t size = 20'000, bad = size - 100;
  const int one[] = {1};
  for (const bool has_range : {false, true}) {
    std::vector<int> x(size, 5);
    x[bad] = 777;
    std::int64_t sums[7];
    std::vector<ticket> held;
    for (std::int64_t& sum : sums)
      held.push_back(r.submit(add_procedure, std::int64_t{1}, std::int64_t{2}, sum));
    ticket t = has_range ? r.submit(add_index_procedure, range{0, size}, one,
                                    sliced(strided(x.data(), size, 1, 1)))
                         : r.submit(add_one_procedure, sliced(x));
    held.clear();  // now there are tickets for the pieces of the rest
    const outcome o = t.wait_outcome(wait_limit_ns);
    EXPECT_EQ(o.code, status::poison);
    EXPECT_NE(text_of(o).find("[19900, 19901)"), std::string::npos) << text_of(o);
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(x[i], i == bad ? 777 : has_range ? 5 + static_cast<int>(i) : 6) << i;
  }
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

// The pieces of a hook are in no order that Leveret knows.
TEST_F(confined_memory, a_hook_without_tickets_is_told) {
  config c = settings();
  c.tickets = 1;
  c.local_store_bytes = 4096;
  runtime r(c);
  std::vector<int> x(10'000, 5);
  const outcome o = r.submit(add_by_hook_procedure, x).wait_outcome(wait_limit_ns);
  EXPECT_EQ(o.code, status::out_of_memory);
  EXPECT_NE(text_of(o).find("config.tickets"), std::string::npos) << text_of(o);
  EXPECT_EQ(x, std::vector<int>(10'000, 5));
  EXPECT_EQ(r.count().deaths, 0u);
  close_and_check(r);
}

// A worker that is there sees what is allocated, given back and allocated again.
TEST_F(confined_memory, arrays_come_and_go_while_a_worker_lives) {
  runtime r(settings());
  ASSERT_TRUE(is_usable(r));
  std::size_t size = 1000;
  for (int round = 0; round < 12; ++round, size *= 3) {
    if (size > 40 * mib / sizeof(int)) size = 1000;
    shared_array<int> x(size);
    x[0] = round;
    x[size - 1] = 7;
    for (int again = 0; again < 2; ++again) {  // what the host writes later is seen, too
      x[size / 2] = again;
      std::int64_t sum = -1;
      ASSERT_EQ(r.submit(sum_procedure, x, sum).wait_outcome(wait_limit_ns).code, status::ok);
      EXPECT_EQ(sum, round + 7 + again) << size;
    }
  }
  EXPECT_EQ(r.count().deaths, 0u);
  close_and_check(r);
}

}  // namespace

}  // namespace lev::test
