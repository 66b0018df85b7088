// Times of a simulated Cell against those computed by hand, one resource at a time.
#include <leveret/cell.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lev::cell {
namespace {

// Round numbers for the hand: 1 GHz, so that a cycle is a nanosecond; a line in 8 cycles over a
// port, in 16 of the stream to memory, in 4 of memory.
machine_file simple() {
  return machine_file::named("cell-ps3")
      .with("clock.rate", 1e9)
      .with("eib.port", 16e9)
      .with("spe.stream", 8e9)
      .with("memory.rate", 32e9)
      .with("memory.efficiency", 1)
      .with("eib.command", 1)
      .with("mfc.issue", 10)
      .with("spe.poll", 20)
      .with("mfc.list_element", 5)
      .with("dma.read_latency", 1000)
      .with("dma.read_latency_loaded", 1000)
      .with("dma.write_latency", 600)
      .with("dma.write_latency_loaded", 600)
      .with("dma.store_latency", 300);
}

template <class Program>
std::int64_t cycles_of(const machine_file& file, Program program) {
  machine cell(file);
  const auto there = cell.memory<char>(1 << 20);
  std::int64_t took = 0;
  cell.spe_program(0, [&](spe& s) {
    const auto here = s.allocate<char>(65536);
    const cycles begin = s.now_cycles();
    program(s, here, there);
    took = (s.now_cycles() - begin).count;
  });
  cell.run();
  return took;
}

TEST(cell_times, one_transfer_is_issue_latency_and_lines) {
  const auto get = [](std::uint32_t bytes) {
    return cycles_of(simple(), [=](spe& s, auto here, auto there) {
      s.get(here.ls, there.ea, bytes, 0);
      s.wait_all(1);
    });
  };
  // 16 bytes are a line: 10 + 1000 + 16.
  EXPECT_EQ(get(16), 1026);
  EXPECT_EQ(get(128), 1026);
  EXPECT_EQ(get(16384), 10 + 1000 + 128 * 16);
  const std::int64_t put = cycles_of(simple(), [](spe& s, auto here, auto there) {
    s.put(here.ls, there.ea, 256, 0);
    s.wait_all(1);
  });
  EXPECT_EQ(put, 10 + 600 + 2 * 16);
}

TEST(cell_times, lines_that_lie_differently_cost_twice) {
  const auto get = [](ls_t ls_off, ea_t ea_off) {
    return cycles_of(simple(), [=](spe& s, auto here, auto there) {
      s.get(here.ls + ls_off, there.ea + ea_off, 1024, 0);
      s.wait_all(1);
    });
  };
  EXPECT_EQ(get(0, 0), 1010 + 8 * 16);
  EXPECT_EQ(get(16, 16), 1010 + 9 * 16);  // touches nine lines
  EXPECT_EQ(get(0, 16), 1010 + 2 * 9 * 16);
}

TEST(cell_times, transfers_in_the_queue_overlap_but_for_the_wire) {
  const std::int64_t took = cycles_of(simple(), [](spe& s, auto here, auto there) {
    for (ls_t i = 0; i < 4; ++i) s.get(here.ls + 16384 * i, there.ea, 16384, i);
    s.wait_all(0xf);
  });
  EXPECT_EQ(took, 10 + 1000 + 4 * 128 * 16);
}

TEST(cell_times, the_seventeenth_command_waits_for_room) {
  const std::int64_t sixteen = cycles_of(simple(), [](spe& s, auto here, auto there) {
    for (int i = 0; i < 16; ++i) s.get(here.ls, there.ea, 128, 0);
  });
  EXPECT_EQ(sixteen, 160);
  const std::int64_t more = cycles_of(simple(), [](spe& s, auto here, auto there) {
    for (int i = 0; i < 17; ++i) s.get(here.ls, there.ea, 128, 0);
  });
  EXPECT_EQ(more, 1026);  // until the first has ended
}

TEST(cell_times, a_wait_for_room_is_counted_whatever_waits) {
  machine cell(machine_file::named("cell-ps3"));
  const auto memory = cell.memory<std::uint8_t>(line_bytes);
  virtual_time waited{};
  cell.spe_program(0, [&](spe& s) {
    const auto line = s.allocate<std::uint8_t>(line_bytes);
    const virtual_time issue =
        cell.clock().time_of(cycles(static_cast<std::int64_t>(cell.file().value("mfc.issue"))));
    constexpr int lines = 200;
    for (int i = 0; i < lines; ++i) s.putqlluc(line.ls, memory.ea, 0);
    waited = s.now() - issue * lines;
  });
  const report r = cell.run();
  EXPECT_GT(waited, virtual_time(0));
  EXPECT_EQ(r.spes[0].transfer_waits, waited);
}

TEST(cell_times, elements_of_a_list_begin_one_after_the_other) {
  const std::int64_t took = cycles_of(simple(), [](spe& s, auto, auto there) {
    const auto list = s.allocate<list_element>(10);
    const auto here = s.allocate<char>(160);
    for (std::uint32_t i = 0; i < 10; ++i)
      list[i] = {16, static_cast<std::uint32_t>(there.ea) + 128 * i};
    s.get_list(here.ls, there.ea, list, 0);
    s.wait_all(1);
  });
  // The stream to memory is slower than elements begin.
  EXPECT_EQ(took, 10 + 5 + 1000 + 10 * 16);
}

TEST(cell_times, memory_is_shared_and_a_port_is_not) {
  machine cell(simple().with("spe.stream", 1e12));
  const auto there = cell.memory<char>(1 << 20);
  std::vector<std::int64_t> ends(6);
  for (unsigned i = 0; i < 6; ++i)
    cell.spe_program(i, [&, i](spe& s) {
      const auto here = s.allocate<char>(16384);
      s.get(here, there.ea, 0);
      s.wait_all(1);
      ends[i] = s.now_cycles().count;
    });
  cell.run();
  // A port needs 1024 cycles for 128 lines, and memory 512: for six blocks, it is the last.
  EXPECT_EQ(*std::max_element(ends.begin(), ends.end()), 10 + 1000 + 6 * 512);
  EXPECT_EQ(*std::min_element(ends.begin(), ends.end()), 10 + 1000 + 1024);
}

// The memory gives turns by the line: a look at a word does not wait for another's 16 KiB.
TEST(cell_times, a_line_goes_between_the_lines_of_long_transfers) {
  machine cell(simple().with("spe.stream", 1e12));
  const auto there = cell.memory<char>(1 << 20);
  std::int64_t look = 0;
  std::int64_t last = 0;
  for (unsigned i = 0; i < 3; ++i)
    cell.spe_program(i, [&](spe& s) {
      const auto here = s.allocate<char>(16384);
      s.get(here, there.ea, 0);
      s.wait_all(1);
      last = std::max(last, s.now_cycles().count);
    });
  cell.spe_program(3, [&](spe& s) {
    const auto here = s.allocate<char>(128);
    s.compute(cycles(100));
    s.get(here.ls, there.ea, 8, 0);
    s.wait_all(1);
    look = s.now_cycles().count;
  });
  cell.run();
  // One command and one line of another, then its own.
  EXPECT_EQ(look, 100 + 10 + 1000 + 1 + 4 + 4);
  EXPECT_EQ(last, 10 + 1000 + 3 * 512);
}

// So does an MFC, which makes up to 16 transfers at the same time.
TEST(cell_times, a_line_goes_between_the_lines_of_the_same_mfc) {
  std::int64_t line = 0;
  const std::int64_t took = cycles_of(simple(), [&](spe& s, auto here, auto there) {
    s.get(here.ls, there.ea, 16384, 0);
    s.get(here.ls + 16384, there.ea, 128, 1);
    s.wait_all(2);
    line = s.now_cycles().count;
    s.wait_all(1);
  });
  // One command and one line of the stream of the other, then its own.
  EXPECT_EQ(line, 10 + 10 + 1000 + 1 + 16 + 16);
  EXPECT_EQ(took, 10 + 1000 + 128 * 16);
}

TEST(cell_times, latency_grows_with_those_that_have_transfers_under_way) {
  const machine_file loaded = simple()
                                  .with("dma.read_latency_loaded", 1150)
                                  .with("dma.loaded_spes", 16)
                                  .with("spe.stream", 1e12)
                                  .with("memory.rate", 1e12)
                                  .with("eib.port", 1e12);
  machine cell(loaded);
  const auto there = cell.memory<char>(4096);
  std::int64_t last = 0;
  for (unsigned i = 0; i < 6; ++i)
    cell.spe_program(i, [&](spe& s) {
      const auto here = s.allocate<char>(128);
      s.get(here, there.ea, 0);
      s.wait_all(1);
      last = std::max(last, s.now_cycles().count);
    });
  cell.run();
  // The last sees five others: 1000 + 150 * 5 / 15.
  EXPECT_EQ(last, 10 + 1050);
}

TEST(cell_times, atomic_lines_are_dear_until_they_are_here) {
  std::vector<std::int64_t> took;
  const machine_file file = simple().with("atomic.remote", 800).with("atomic.own", 100);
  cycles_of(file, [&](spe& s, auto here, auto there) {
    for (int i = 0; i < 3; ++i) {
      const cycles begin = s.now_cycles();
      s.getllar(here.ls, there.ea + (i == 2 ? 4096 : 0));
      took.push_back((s.now_cycles() - begin).count);
    }
    const cycles begin = s.now_cycles();
    EXPECT_TRUE(s.putllc(here.ls, there.ea + 4096));
    took.push_back((s.now_cycles() - begin).count);
  });
  EXPECT_EQ(took, (std::vector<std::int64_t>{800, 100, 800, 100}));
}

TEST(cell_times, threads_of_an_spe_switch_for_a_price) {
  const std::int64_t took =
      cycles_of(simple().with("spe.thread_switch", 175), [](spe& s, auto, auto) {
        for (int i = 0; i < 3; ++i)
          s.spawn([&s] {
            for (int k = 0; k < 4; ++k) s.yield();
          });
        for (int k = 0; k < 4; ++k) s.yield();
        for (unsigned i = 1; i <= 3; ++i) s.join(i);
      });
  // Four turns of four, and one to let each come to its end.
  EXPECT_EQ(took, 17 * 175);
}

TEST(cell_times, mailboxes_take_the_way_over_the_bus) {
  machine cell(simple().with("eib.way", 400).with("ppe.mmio_store", 25).with("spe.channel", 10));
  std::int64_t came = 0;
  std::int64_t back = 0;
  cell.spe_program(0, [&](spe& s) {
    EXPECT_EQ(s.read_mailbox(), 5u);
    came = s.now_cycles().count;
    s.write_mailbox(6);
  });
  cell.ppe_program([&](ppe& p) {
    p.write_mailbox(0, 5);
    EXPECT_EQ(p.read_mailbox(0), 6u);
    back = p.now_cycles().count;
  });
  cell.run();
  EXPECT_EQ(came, 800 + 25 + 400);        // status, store, way
  EXPECT_EQ(back, 800 + 25 + 800 + 800);  // the first look finds it; then the letter
}

machine_file with_caches() {
  return simple()
      .with("ppe.near_load", 5)
      .with("ppe.cached_load", 40)
      .with("ppe.missed_load", 240)
      .with("ppe.store", 20);
}

std::int64_t cycles_of_load(ppe& p, ea_t ea) {
  const cycles begin = p.now_cycles();
  p.load<std::uint32_t>(ea);
  return (p.now_cycles() - begin).count;
}

TEST(cell_times, a_word_costs_by_where_it_is) {
  machine cell(with_caches());
  const auto words = cell.memory<std::uint32_t>(64);
  std::vector<std::int64_t> took;
  cell.ppe_program([&](ppe& p) {
    for (int i = 0; i < 3; ++i) {
      took.push_back(cycles_of_load(p, words.ea));
      if (i == 1) p.compute(cycles(100000));  // meanwhile the SPE writes past the caches
    }
  });
  cell.spe_program(0, [&](spe& s) {
    const auto line = s.allocate<char>(128);
    s.compute(cycles(1000));
    s.put(line, words.ea, 0);
    s.wait_all(1);
  });
  cell.run();
  EXPECT_EQ(took, (std::vector<std::int64_t>{240, 5, 240}));
}

TEST(cell_times, a_line_that_goes_to_the_caches_is_in_the_second_level) {
  machine cell(with_caches());
  const auto words = cell.memory<std::uint32_t>(64);
  std::vector<std::int64_t> took;
  cell.ppe_program([&](ppe& p) {
    p.load<std::uint32_t>(words.ea);
    p.compute(cycles(100000));  // meanwhile the SPE writes through the caches
    took.push_back(cycles_of_load(p, words.ea));
    p.store<std::uint32_t>(words.ea, 1);  // written through: the line stays
    took.push_back(cycles_of_load(p, words.ea));
    const cycles begin = p.now_cycles();
    (void)p.load_reserved(words.ea);
    took.push_back((p.now_cycles() - begin).count);
  });
  cell.spe_program(0, [&](spe& s) {
    const auto line = s.allocate<char>(128);
    s.compute(cycles(1000));
    s.putlluc(line.ls, words.ea);
  });
  cell.run();
  EXPECT_EQ(took, (std::vector<std::int64_t>{40, 5, 40}));
}

// A line has four places in 32 KiB, which it shares with those 8 KiB away.
TEST(cell_times, the_first_level_cache_has_room_for_four_lines_of_a_set) {
  machine cell(with_caches());
  const auto words = cell.memory<char>(65536);
  std::vector<std::int64_t> took;
  cell.ppe_program([&](ppe& p) {
    for (const std::size_t line : {0, 1, 2, 3, 0, 4, 0, 1})
      took.push_back(cycles_of_load(p, words.at(line * 8192)));
  });
  cell.run();
  EXPECT_EQ(took, (std::vector<std::int64_t>{240, 240, 240, 240, 5, 240, 5, 40}));
}

}  // namespace
}  // namespace lev::cell
