// Programs made at random for a simulated Cell that share what they work on: a block under a lock
// whose release stands in the MFC's queue behind the data, counters, letters in bursts that fill
// mailboxes and find them empty, rings of signals, transfers by the PPE, lists that scatter.
// Nothing is lost or torn, whatever the seed, and the same run is the same run.
#include <leveret/cell.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace lev::cell {
namespace {

constexpr unsigned sharers = 4;
constexpr std::uint32_t block_words = 512;
constexpr unsigned rounds = 8;  // of everything, for each SPE
constexpr unsigned turns = 6;   // of the lock
constexpr std::uint32_t free_lock = 1;

// The variables that all share, in memory.
struct common {
  array<std::uint32_t> lock;
  array<std::uint32_t> block;  // all words equal, and the number of turns
  array<std::uint32_t> count;  // of the SPEs and of the PPE
  array<std::uint32_t> scattered;
  array<std::uint32_t> carried;  // by the PPE's transfers, a line for each SPE
};

common share(machine& cell) {
  common c{cell.memory<std::uint32_t>(32), cell.memory<std::uint32_t>(block_words),
           cell.memory<std::uint32_t>(32), cell.memory<std::uint32_t>(32 * sharers * rounds),
           cell.memory<std::uint32_t>(32 * sharers)};
  c.lock[0] = free_lock;
  return c;
}

struct partner {
  spe& s;
  const common& c;
  random_source& random;
  local<std::uint32_t> line{};
  local<std::uint32_t> block{};

  void rest(std::uint32_t most) { s.compute(cycles(random.below(most))); }

  void acquire() {
    for (;;) {
      s.getllar(line.ls, c.lock.ea);
      if (line[0] == free_lock) {
        line[0] = 0;
        if (s.putllc(line.ls, c.lock.ea)) return;
      }
      rest(3000);
    }
  }

  // The lock opens when the block has come to memory: its release is queued behind it.
  void take_a_turn() {
    const unsigned tag = random.below(32);
    acquire();
    s.get(block, c.block.ea, tag);
    s.wait_all(1u << tag);
    const std::uint32_t seen = block[0];
    for (std::uint32_t& word : std::span(block.data, block_words)) {
      EXPECT_EQ(word, seen) << "SPE " << s.index();
      word = seen + 1;
    }
    s.put(block, c.block.ea, tag);
    line[0] = free_lock;
    s.putqlluc(line.ls, c.lock.ea, tag);
    s.wait_all(1u << tag);
  }

  void count_up() {
    do {
      s.getllar(line.ls, c.count.ea);
      rest(300);
      ++line[0];
    } while (!s.putllc(line.ls, c.count.ea));
  }

  // A list of lines in any order of places; each place once.
  void scatter() {
    const auto list = s.allocate<list_element>(rounds, 8);
    const auto from = s.allocate<std::uint32_t>(32 * rounds);
    const std::uint32_t shift = random.below(rounds);
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::size_t place = s.index() * rounds + (i + shift) % rounds;
      list[i] = {128, static_cast<std::uint32_t>(c.scattered.at(32 * place))};
      for (std::uint32_t k = 0; k < 32; ++k)
        from[32 * i + k] = static_cast<std::uint32_t>(place + 1);
    }
    s.put_list(from.ls, c.scattered.ea, list, 9, static_cast<order>(random.below(3)));
    s.wait_all(1u << 9);
  }

  // A bit for each round to the next SPE, and all bits of the one before.
  void go_round() {
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < rounds; ++i) {
      s.send_signal((s.index() + 1) % sharers, 1 + s.index() % 2, 1u << i, i);
      rest(2000);
    }
    const unsigned before = (s.index() + sharers - 1) % sharers;
    while (bits != (1u << rounds) - 1) bits |= s.read_signal(1 + before % 2);
  }

  // Letters come in bursts of more than a mailbox holds; as many go back, by either way.
  void answer() {
    for (unsigned i = 0; i < rounds; ++i) {
      const std::uint32_t letter = s.read_mailbox();
      EXPECT_EQ(letter, i);
      rest(4000);
      i % 2 == 0 ? s.write_mailbox(letter + 100) : s.write_interrupt_mailbox(letter + 100);
    }
  }

  void run() {
    line = s.allocate<std::uint32_t>(32);
    block = s.allocate<std::uint32_t>(block_words);
    for (unsigned i = 0; i < turns; ++i) {
      take_a_turn();
      count_up();
      rest(2000);
    }
    scatter();
    go_round();
    answer();
  }
};

// The host's thread for an SPE: letters one behind the other, then the answers.
void write_to(ppe& p, const common& c, unsigned index, ls_t here) {
  for (unsigned i = 0; i < turns; ++i)
    while (!p.store_conditional(c.count.ea, p.load_reserved(c.count.ea) + 1)) p.yield();
  const ea_t mine = c.carried.at(32 * index);
  p.store<std::uint32_t>(mine, index + 7);
  p.proxy_get(index, here, mine, 128, index);
  p.wait_proxy(index, 1u << index);
  p.store<std::uint32_t>(mine, 0);
  p.proxy_put(index, here, mine, 128, index);
  p.wait_proxy(index, 1u << index);
  EXPECT_EQ(p.load<std::uint32_t>(mine), index + 7);
  unsigned read = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    while (!p.try_write_mailbox(index, i)) {
      if (read + 4 >= i) continue;
      const std::uint32_t letter =
          read % 2 == 0 ? p.read_mailbox(index) : p.read_interrupt_mailbox(index);
      EXPECT_EQ(letter, 100 + read++);
    }
  }
  for (; read < rounds; ++read) {
    const std::uint32_t letter =
        read % 2 == 0 ? p.read_mailbox(index) : p.read_interrupt_mailbox(index);
    EXPECT_EQ(letter, 100 + read);
  }
}

struct shared_outcome {
  std::uint64_t hash;
  virtual_time time;
  bool operator==(const shared_outcome&) const = default;
};

shared_outcome run_shared(std::uint64_t program, std::uint64_t schedule) {
  options o;
  o.seed = schedule;
  machine cell(machine_file::named("cell-ps3").with("machine.spes", sharers), o);
  const common c = share(cell);
  std::vector<random_source> sources;
  for (unsigned i = 0; i < sharers; ++i) sources.emplace_back(program * sharers + i);
  constexpr ls_t of_proxies = 0x20000;  // behind what the programs allocate
  for (unsigned i = 0; i < sharers; ++i) {
    cell.spe_program(i, [&, i](spe& s) { partner{s, c, sources[i]}.run(); });
    cell.ppe_program([&, i](ppe& p) { write_to(p, c, i, of_proxies); }, std::to_string(i));
  }
  const report r = cell.run();
  EXPECT_EQ(c.lock[0], free_lock) << "program " << program;
  EXPECT_EQ(c.block[0], sharers * turns) << "program " << program;
  EXPECT_EQ(c.block[block_words - 1], sharers * turns) << "program " << program;
  EXPECT_EQ(c.count[0], 2 * sharers * turns) << "program " << program;
  for (std::uint32_t i = 0; i < sharers * rounds; ++i)
    EXPECT_EQ(c.scattered[std::size_t{32} * i + 31], i + 1) << "program " << program;
  return {r.hash, r.time};
}

TEST(cell_shared, nothing_is_lost_or_torn) {
  for (std::uint64_t program = 0; program < 40; ++program) run_shared(program, program % 5);
}

TEST(cell_shared, replays_are_one_run) {
  const shared_outcome first = run_shared(11, 2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(run_shared(11, 2), first);
  EXPECT_NE(run_shared(12, 2).hash, first.hash);
}

// The architecture's queued line waits for its tag group, as if it had a fence; others pass it.
TEST(cell_shared, a_queued_line_stands_behind_its_tag_group) {
  for (const bool is_same_tag : {true, false}) {
    machine cell(machine_file::named("cell-ps3"));
    const auto data = cell.memory<std::uint32_t>(4096);
    const auto flag = cell.memory<std::uint32_t>(32);
    std::uint32_t seen = 0;
    cell.spe_program(0, [&](spe& s) {
      const auto from = s.allocate<std::uint32_t>(4096);
      const auto line = s.allocate<std::uint32_t>(32);
      from[4095] = 5;
      line[0] = 1;
      s.put(from, data.ea, 3);
      s.putqlluc(line.ls, flag.ea, is_same_tag ? 3 : 4);
      s.wait_all(~0u);
    });
    cell.ppe_program([&](ppe& p) {
      p.spin(flag.ea, 0);
      seen = p.load<std::uint32_t>(data.at(4095));
    });
    cell.run();
    EXPECT_EQ(seen, is_same_tag ? 5u : 0u);
  }
}

// Two runs of threads that were put on the two contexts of a PPE.
TEST(cell_shared, threads_of_a_ppe_run_where_they_were_put_and_draw_their_own_numbers) {
  constexpr std::uint32_t bound = 1000;
  std::vector<std::uint32_t> drawn[2];
  for (std::vector<std::uint32_t>& numbers : drawn) {
    machine cell(machine_file::named("cell-ps3"));
    for (int context = 0; context < 2; ++context)
      cell.ppe_program(
          [&numbers, context](ppe& p) {
            for (int i = 0; i < 8; ++i) {
              p.compute(cycles(100));
              EXPECT_EQ(p.context(), context);
              numbers.push_back(p.random(bound));
            }
          },
          {}, context);
    const report took = cell.run();
    EXPECT_EQ(cell.now(), took.time);
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_GT(std::set<std::uint32_t>(drawn[0].begin(), drawn[0].end()).size(), 8u);
  EXPECT_LT(*std::max_element(drawn[0].begin(), drawn[0].end()), bound);
}

TEST(cell_shared, tags_that_are_done_are_told_while_the_program_goes_on) {
  machine cell(machine_file::named("cell-ps3"));
  const auto from = cell.memory<std::uint32_t>(32);
  from[31] = 7;
  unsigned looks = 0;
  cell.spe_program(0, [&](spe& s) {
    const auto to = s.allocate<std::uint32_t>(32);
    s.get(to, from.ea, 3);
    while (s.tags_done(1u << 3) == 0) ++looks;
    EXPECT_EQ(to[31], 7u);
    EXPECT_EQ(s.tags_done(~0u), ~0u);
  });
  cell.run();
  EXPECT_GT(looks, 0u);
}

TEST(cell_shared, a_store_over_the_bus_beyond_all_addresses_says_what_it_was) {
  machine cell(machine_file::named("cell-ps3"));
  cell.ppe_program(
      [](ppe& p) {
        const std::uint64_t word = 0;
        p.mmio_store(~ea_t{3}, &word, sizeof word);
      },
      "starter");
  try {
    cell.run();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind, error_kind::bad_address);
    EXPECT_NE(std::string(e.what()).find("starter: MMIO store"), std::string::npos) << e.what();
  }
}

// A list is read when its transfer begins. A program that spoils it before that is told so.
TEST(cell_shared, a_list_that_is_spoilt_in_the_queue_is_an_error) {
  for (const std::uint32_t bytes : {24u, 16400u}) {
    machine cell(machine_file::named("cell-ps3"));
    const auto there = cell.memory<char>(32768);
    cell.spe_program(0, [&](spe& s) {
      const auto here = s.allocate<char>(16384);
      const auto list = s.allocate<list_element>(1, 8);
      list[0] = {128, static_cast<std::uint32_t>(there.ea)};
      s.put(here, there.ea, 1);
      s.get_list(here.ls, there.ea, list, 1, order::fence);
      list[0].bytes = bytes;
      s.wait_all(~0u);
    });
    try {
      cell.run();
      ADD_FAILURE() << "a list of " << bytes << " bytes was taken";
    } catch (const error& e) {
      EXPECT_EQ(e.kind, error_kind::illegal_transfer);
      EXPECT_NE(std::string(e.what()).find("element 0 of a list of gets"), std::string::npos)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace lev::cell
