// Transfers by hand: which are legal, what each error says, and when bytes move.
#include <leveret/cell.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace lev::cell {
namespace {

struct outcome {
  bool is_legal = true;
  error_kind kind = error_kind::deadlock;
  std::string text;
};

// Runs one program on SPE 0 of a PS3; what it threw.
template <class Program>
outcome run_spe(Program program, options o = {}) {
  machine cell(machine_file::named("cell-ps3"), o);
  cell.spe_program(0, [&](spe& s) { program(cell, s); }, "test");
  try {
    cell.run();
  } catch (const error& e) {
    return {false, e.kind, e.what()};
  }
  return {};
}

outcome transfer(std::uint32_t bytes, ls_t ls_off, ea_t ea_off, unsigned tag, bool is_get) {
  return run_spe([=](machine& cell, spe& s) {
    const auto there = cell.memory<char>(40000);
    const auto here = s.allocate<char>(20000);
    if (is_get)
      s.get(here.ls + ls_off, there.ea + ea_off, bytes, tag);
    else
      s.put(here.ls + ls_off, there.ea + ea_off, bytes, tag);
    s.wait_all(~0u);
  });
}

// The rule itself, written down once more: the table of all sizes and alignments is held to it.
bool should_be_legal(std::uint32_t bytes, std::uint32_t ls_off, std::uint32_t ea_off) {
  const bool is_small = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (is_small) return ls_off % 16 == ea_off % 16 && ls_off % bytes == 0;
  return bytes > 0 && bytes % 16 == 0 && bytes <= 16384 && ls_off % 16 == 0 && ea_off % 16 == 0;
}

constexpr std::uint32_t sizes[] = {
    0,  1,   2,   3,   4,   5,   6,   7,    8,    9,    12,    15,    16,    17,    24,    31,   32,
    48, 100, 112, 127, 128, 129, 144, 1000, 1024, 4096, 16368, 16383, 16384, 16385, 16400, 32768};

// Whether get and put take it; an error that the program catches is none of the machine.
bool is_taken(spe& s, ls_t ls, ea_t ea, std::uint32_t bytes) {
  try {
    s.get(ls, ea, bytes, 3);
    s.wait_all(1 << 3);
    s.put(ls, ea, bytes, 3);
    s.wait_all(1 << 3);
  } catch (const error& e) {
    EXPECT_EQ(e.kind, error_kind::illegal_transfer) << e.what();
    return false;
  }
  return true;
}

TEST(cell_transfer, every_size_and_alignment_is_legal_or_an_error) {
  unsigned legal = 0;
  const outcome o = run_spe([&](machine& cell, spe& s) {
    const auto there = cell.memory<char>(40000);
    const auto here = s.allocate<char>(40000);
    for (const std::uint32_t bytes : sizes) {
      for (const std::uint32_t ls_off : {0, 1, 2, 3, 4, 8, 12, 16, 64, 128}) {
        for (const std::uint32_t ea_off : {0, 1, 2, 4, 8, 16, 24, 48, 128}) {
          const bool is_legal = is_taken(s, here.ls + ls_off, there.ea + ea_off, bytes);
          EXPECT_EQ(is_legal, should_be_legal(bytes, ls_off, ea_off))
              << bytes << " bytes at " << ls_off << " and " << ea_off;
          legal += is_legal ? 1 : 0;
        }
      }
    }
  });
  EXPECT_TRUE(o.is_legal) << o.text;
  EXPECT_GT(legal, 100u);
}

TEST(cell_transfer, tags_are_0_to_31) {
  for (const unsigned tag : {0u, 31u}) EXPECT_TRUE(transfer(16, 0, 0, tag, true).is_legal);
  for (const unsigned tag : {32u, 33u, 1000u}) {
    const outcome o = transfer(16, 0, 0, tag, true);
    EXPECT_EQ(o.kind, error_kind::bad_tag);
    EXPECT_NE(o.text.find("tags are 0 to 31"), std::string::npos);
  }
}

TEST(cell_transfer, an_error_names_the_spe_and_what_would_be_right) {
  const outcome size = transfer(24, 0, 0, 0, true);
  EXPECT_NE(size.text.find("SPE 0 (test): get of 24 bytes"), std::string::npos) << size.text;
  EXPECT_NE(size.text.find("round up to 32"), std::string::npos) << size.text;
  const outcome place = run_spe([](machine&, spe& s) { s.get(0, 0x20000, 16, 0); });
  EXPECT_EQ(place.kind, error_kind::bad_address);
  EXPECT_NE(place.text.find("use allocate()"), std::string::npos) << place.text;
  const outcome nowhere = run_spe([](machine&, spe& s) { s.get(s.allocate<char>(16), 16, 0); });
  EXPECT_NE(nowhere.text.find("nothing at address 0x10"), std::string::npos) << nowhere.text;
}

TEST(cell_transfer, an_error_names_the_call) {
  const auto says = [](const std::string& part, const std::function<void(spe&)>& call) {
    const outcome o = run_spe([&](machine&, spe& s) { call(s); });
    EXPECT_NE(o.text.find("SPE 0 (test): " + part), std::string::npos) << o.text;
  };
  says("compute: a time of -1", [](spe& s) { s.compute(cycles(-1)); });
  says("poll: a time of -1", [](spe& s) { s.poll(cycles(-1)); });
  says("progress: a time of -1", [](spe& s) { s.progress(std::chrono::nanoseconds(-1)); });
  says("put: tag 40", [](spe& s) { s.put(0x8000, 0x20000, 16, 40); });
  says("putqlluc: tag 40", [](spe& s) { s.putqlluc(0x8000, 0x20000, 40); });
  says("send_signal: tag 40", [](spe& s) { s.send_signal(1, 1, 1, 40); });
  const auto list = [](spe& s) {
    const auto elements = s.allocate<list_element>(3);
    for (int i = 0; i < 2; ++i) elements[i] = {16, 0x20000};
    elements[2] = {99, 0x20000};
    return elements;
  };
  says("list of puts: tag 40", [&](spe& s) { s.put_list(0x8000, 0x20000, list(s), 40); });
  says("element 2 of a list of puts of 99 bytes",
       [&](spe& s) { s.put_list(0x8000, 0x20000, list(s), 1); });
}

TEST(cell_transfer, a_store_that_is_full_says_what_is_left) {
  const outcome o = run_spe([](machine&, spe& s) {
    s.allocate<char>(200 << 10);
    s.allocate<char>(64 << 10);
  });
  EXPECT_EQ(o.kind, error_kind::store_overflow);
  EXPECT_NE(o.text.find("32768 of 262144 are left"), std::string::npos) << o.text;
}

TEST(cell_transfer, lists_gather_and_scatter) {
  const outcome o = run_spe([](machine& cell, spe& s) {
    const auto from = cell.memory<char>(4096);
    const auto to = cell.memory<char>(4096);
    for (int i = 0; i < 4096; ++i) from[static_cast<std::size_t>(i)] = static_cast<char>(i % 101);
    const auto list = s.allocate<list_element>(3);
    const auto block = s.allocate<char>(96);
    for (std::uint32_t i = 0; i < 3; ++i)
      list[i] = {32, static_cast<std::uint32_t>(from.ea) + 1024 * i};
    s.get_list(block.ls, from.ea, list, 1);
    s.wait_all(1 << 1);
    for (std::uint32_t i = 0; i < 3; ++i)
      EXPECT_EQ(std::memcmp(&block[32 * i], &from[1024 * i], 32), 0);
    for (std::uint32_t i = 0; i < 3; ++i) list[i].low = static_cast<std::uint32_t>(to.ea) + 512 * i;
    s.put_list(block.ls, to.ea, list, 1);
    s.wait_all(1 << 1);
    for (std::uint32_t i = 0; i < 3; ++i)
      EXPECT_EQ(std::memcmp(&to[512 * i], &from[1024 * i], 32), 0);
  });
  EXPECT_TRUE(o.is_legal) << o.text;
}

TEST(cell_transfer, lists_are_checked_whole_and_element_by_element) {
  const auto with = [](std::size_t count, std::uint32_t bytes, std::uint32_t shift) {
    return run_spe([=](machine& cell, spe& s) {
      const auto from = cell.memory<char>(64 << 10);
      const auto list = s.allocate<list_element>(count == 0 ? 1 : count);
      const auto block = s.allocate<char>(64 << 10);
      for (std::size_t i = 0; i < count; ++i)
        list[i] = {bytes, static_cast<std::uint32_t>(from.ea) + shift};
      s.get_list(block.ls, from.ea, {list.ls, list.data, count}, 0);
      s.wait_all(1);
    });
  };
  EXPECT_TRUE(with(2048, 16, 0).is_legal);
  EXPECT_EQ(with(2049, 16, 0).kind, error_kind::illegal_transfer);
  EXPECT_EQ(with(0, 16, 0).kind, error_kind::illegal_transfer);
  EXPECT_EQ(with(1, 24, 0).kind, error_kind::illegal_transfer);
  EXPECT_EQ(with(1, 16, 8).kind, error_kind::illegal_transfer);
}

TEST(cell_transfer, targets_of_gets_are_poisoned_until_the_end) {
  const outcome o = run_spe([](machine& cell, spe& s) {
    const auto there = cell.memory<unsigned char>(128);
    std::memset(there.data, 7, 128);
    const auto here = s.allocate<unsigned char>(128);
    s.get(here, there.ea, 0);
    EXPECT_EQ(here[0], 0xd5);
    EXPECT_EQ(here[127], 0xd5);
    s.wait_all(1);
    EXPECT_EQ(here[0], 7);
    EXPECT_EQ(here[127], 7);
  });
  EXPECT_TRUE(o.is_legal) << o.text;
}

TEST(cell_transfer, puts_read_their_source_at_the_end) {
  const outcome o = run_spe([](machine& cell, spe& s) {
    const auto there = cell.memory<unsigned char>(128);
    const auto here = s.allocate<unsigned char>(128);
    std::memset(here.data, 1, 128);
    s.put(here, there.ea, 0);
    std::memset(here.data, 2, 128);  // too early
    s.wait_all(1);
    EXPECT_EQ(there[5], 2);
  });
  EXPECT_TRUE(o.is_legal) << o.text;
}

TEST(cell_transfer, a_fence_waits_for_its_tag_group_and_a_barrier_holds_up_those_behind) {
  const outcome o = run_spe([](machine& cell, spe& s) {
    const auto a = cell.memory<unsigned char>(16384);
    const auto b = cell.memory<unsigned char>(16384);
    std::memset(b.data, 9, 16384);
    const auto here = s.allocate<unsigned char>(16384);
    std::memset(here.data, 4, 16384);
    s.put(here, a.ea, 2);
    s.get(here, b.ea, 2, order::fence);  // into what is still being put
    s.wait_all(1 << 2);
    EXPECT_EQ(a[16383], 4);
    EXPECT_EQ(here[0], 9);
    const auto small = s.allocate<unsigned char>(16);
    small[0] = 1;
    s.put(here, a.ea, 2);
    s.put(small, a.ea, 2, order::barrier);
    s.get(small, b.ea, 2);
    s.wait_all(1 << 2);
    EXPECT_EQ(a[0], 1);
    EXPECT_EQ(small[0], 9);
  });
  EXPECT_TRUE(o.is_legal) << o.text;
}

TEST(cell_transfer, the_memory_of_each_chip_is_on_a_line) {
  for (const unsigned chips : {2u, 3u, 6u}) {
    machine cell(
        machine_file::named("cell-ps3").with("machine.chips", chips).with("machine.memory", 1));
    std::vector<array<double>> all;
    for (unsigned i = 0; i < chips; ++i) all.push_back(cell.memory<double>(16, i));
    for (const array<double>& each : all) EXPECT_EQ(each.ea % line_bytes, 0u) << chips << " chips";
    cell.spe_program(0, [&](spe& s) {
      const auto here = s.allocate<double>(16);
      for (const array<double>& each : all) s.get(here, each.ea, 0);
      s.wait_all(1);
    });
    cell.run();
  }
}

TEST(cell_transfer, stores_of_other_spes_are_at_effective_addresses) {
  machine cell(machine_file::named("cell-ps3"));
  cell.spe_program(0, [&](spe& s) {
    const auto mine = s.allocate<std::uint32_t>(4);
    mine[0] = 0;
    EXPECT_EQ(s.spin(mine, 0, cycles(20)), 77u);
  });
  cell.spe_program(1, [&](spe& s) {
    const auto mine = s.allocate<std::uint32_t>(4);
    mine[0] = 77;
    s.put(mine, cell.store_ea(0, mine.ls), 0);
    s.wait_all(1);
  });
  EXPECT_NO_THROW(cell.run());
}

// The two places have bytes in common; the sanitizers' builds tell a copy that may not have them.
TEST(cell_transfer, a_store_is_moved_within_itself) {
  const outcome found = run_spe([](machine& cell, spe& s) {
    const auto all = s.allocate<unsigned char>(1024);
    for (int i = 0; i < 1024; ++i) all[i] = static_cast<unsigned char>(i / 16);
    s.put(all.ls, cell.store_ea(0, all.ls + 16), 512, 0);
    s.wait_all(1);
    for (int i = 16; i < 528; ++i) EXPECT_EQ(all[i], i / 16 - 1) << i;
    s.get(all.ls, cell.store_ea(0, all.ls + 16), 512, 0);
    s.wait_all(1);
    for (int i = 0; i < 512; ++i) EXPECT_EQ(all[i], i / 16) << i;
  });
  EXPECT_TRUE(found.is_legal) << found.text;
}

}  // namespace
}  // namespace lev::cell
