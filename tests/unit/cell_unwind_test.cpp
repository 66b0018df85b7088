// How a run of a simulated Cell ends: nothing is left behind; after an error stacks are unwound,
// and no destructor waits.
#include <leveret/cell.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "cell/parts.hpp"

namespace lev::cell {
namespace {

template <class F>
struct at_end {
  F does;
  ~at_end() { does(); }
};
template <class F>
at_end(F) -> at_end<F>;

std::string how_it_ends(machine& cell) {
  try {
    cell.run();
  } catch (const error& e) {
    return e.what();
  }
  return "it ended";
}

// The destructor begins while the run goes on (a program's own error) or when it is over.
void expect_end_in_spe(const std::function<void(spe&, ea_t)>& waits, const std::string& name) {
  for (const bool is_own : {false, true}) {
    machine cell(machine_file::named("cell-ps3"));
    const auto memory = cell.memory<std::uint8_t>(1 << 20);
    bool is_done = false;
    cell.spe_program(0, [&](spe& s) {
      const at_end mark{[&] { is_done = true; }};
      const auto block = s.allocate<std::uint8_t>(largest_transfer);
      const at_end guard{[&] { waits(s, memory.ea); }};
      s.get(block, memory.ea, 0);
      s.compute(cycles(10));
      if (is_own) throw error(error_kind::bad_call, "enough of it");
      s.compute(cycles(10'000'000));
    });
    cell.spe_program(1, [](spe& s) {
      s.compute(cycles(20));
      throw error(error_kind::bad_call, "enough of it");
    });
    EXPECT_NE(how_it_ends(cell).find("enough"), std::string::npos) << name;
    EXPECT_TRUE(is_done) << name;
  }
}

TEST(cell_unwind, a_run_leaves_no_threads_behind) {
  machine cell(machine_file::named("cell-qs20"));
  for (int run = 0; run < 3; ++run) {
    for (unsigned chip = 0; chip < 2; ++chip)
      cell.ppe_program([](ppe& p) { p.compute(cycles(1)); }, {}, machine::anywhere, chip);
    cell.run();
    for (const auto& each : cell.parts().processors) EXPECT_EQ(each->thread_count(), 0u);
  }
}

TEST(cell_unwind, a_destructor_of_an_spe_program_does_not_wait) {
  expect_end_in_spe([](spe& s, ea_t) { s.wait_all(1); }, "wait_all");
  expect_end_in_spe([](spe& s, ea_t) { s.wait_any(1); }, "wait_any");
  expect_end_in_spe([](spe& s, ea_t) { s.read_mailbox(); }, "read_mailbox");
  expect_end_in_spe([](spe& s, ea_t) { s.read_signal(1); }, "read_signal");
  expect_end_in_spe(
      [](spe& s, ea_t) {
        for (int i = 0; i < 3; ++i) s.write_mailbox(1);
        for (int i = 0; i < 3; ++i) s.write_interrupt_mailbox(1);
      },
      "write_mailbox");
  expect_end_in_spe(
      [](spe& s, ea_t ea) {
        const auto line = s.allocate<std::uint32_t>(32);
        for (int i = 0; i < 40; ++i) s.putqlluc(line.ls, ea, 1);
        for (int i = 0; i < 40; ++i) s.put(line, ea, 1);
        s.getllar(line.ls, ea);
        s.wait_lost_reservation();
      },
      "room in the queue, reservation");
  expect_end_in_spe(
      [](spe& s, ea_t) {
        const auto word = s.allocate<std::uint32_t>(1);
        word[0] = 5;
        s.spin(word, 5, cycles(100));
      },
      "spin");
  expect_end_in_spe(
      [](spe& s, ea_t) {
        const unsigned other = s.spawn([&s] { s.compute(cycles(100)); });
        s.yield();
        s.join(other);
      },
      "threads");
}

void expect_end_in_ppe(const std::function<void(ppe&, ea_t)>& waits, const std::string& name) {
  for (const bool is_own : {false, true}) {
    machine cell(machine_file::named("cell-ps3"));
    const auto word = cell.memory<std::uint32_t>(1024);
    int begun = 0;
    int done = 0;
    // More than there are contexts: one sleeps, one computes, one waits for a context.
    for (int i = 0; i < 3; ++i)
      cell.ppe_program([&, i](ppe& p) {
        ++begun;
        const at_end mark{[&] { ++done; }};
        const at_end guard{[&] { waits(p, word.ea); }};
        if (i == 0 && is_own) throw error(error_kind::bad_call, "enough of it");
        if (i == 0) p.sleep("what never comes");
        for (;;) p.compute(cycles(1'000'000));
      });
    cell.spe_program(1, [](spe& s) {
      s.compute(cycles(100'000'000));
      throw error(error_kind::bad_call, "enough of it");
    });
    EXPECT_NE(how_it_ends(cell).find("enough"), std::string::npos) << name;
    EXPECT_GE(begun, 2) << name;
    EXPECT_EQ(done, begun) << name;
  }
}

TEST(cell_unwind, a_destructor_of_a_ppe_program_does_not_wait) {
  expect_end_in_ppe([](ppe& p, ea_t) { p.compute(cycles(100'000'000)); }, "compute");
  expect_end_in_ppe([](ppe& p, ea_t ea) { p.spin(ea, 0); }, "spin");
  expect_end_in_ppe([](ppe& p, ea_t) { p.sleep("for ever"); }, "sleep");
  expect_end_in_ppe([](ppe& p, ea_t) { p.read_mailbox(0); }, "read_mailbox");
  expect_end_in_ppe([](ppe& p, ea_t) { p.read_interrupt_mailbox(0); }, "read_interrupt_mailbox");
  expect_end_in_ppe([](ppe& p, ea_t) { p.wait_interrupt(); }, "wait_interrupt");
  expect_end_in_ppe(
      [](ppe& p, ea_t) {
        for (unsigned i = 0; i < 9; ++i) p.write_mailbox(0, i);
      },
      "write_mailbox");
  expect_end_in_ppe(
      [](ppe& p, ea_t ea) {
        for (int i = 0; i < 20; ++i) p.proxy_get(0, 0x8000, ea, 128, 1);
        p.wait_proxy(0, 2);
      },
      "proxy");
  expect_end_in_ppe(
      [](ppe& p, ea_t ea) {
        p.yield();
        p.yield_to(p.self());
        p.store<std::uint32_t>(ea, p.load<std::uint32_t>(ea) + 1);
        p.wake(p.self());
      },
      "yield");
}

// It has no context then: its sleep ended with the run.
TEST(cell_unwind, a_program_that_goes_on_behind_its_own_error_ends_with_the_run) {
  machine cell(machine_file::named("cell-ps3"));
  bool is_caught = false;
  cell.ppe_program([&](ppe& p) {
    try {
      const at_end guard{[&] { p.sleep("what never comes"); }};
      throw 1;
    } catch (int) {
      is_caught = true;
    }
  });
  EXPECT_NE(how_it_ends(cell).find("deadlock"), std::string::npos);
  EXPECT_TRUE(is_caught);
}

TEST(cell_unwind, a_destructor_at_the_end_of_a_scope_may_throw_the_end_of_the_run) {
  struct waiting {
    spe& s;
    ~waiting() noexcept(false) { s.read_mailbox(); }
  };
  machine cell(machine_file::named("cell-ps3"));
  bool goes_on = false;
  cell.spe_program(0, [&](spe& s) {
    {
      const waiting guard{s};
    }
    goes_on = true;
  });
  EXPECT_NE(how_it_ends(cell).find("a letter in its mailbox"), std::string::npos);
  EXPECT_FALSE(goes_on);
}

// Who spins has left no trace where the destructors of others look.
TEST(cell_unwind, a_store_in_a_destructor_tells_nobody_who_is_gone) {
  machine cell(machine_file::named("cell-ps3"));
  const auto word = cell.memory<std::uint32_t>(32);
  cell.ppe_program([&](ppe& p) {
    const at_end guard{[&] {
      volatile char over[4096];
      for (volatile char& each : over) each = 0x5a;
    }};
    p.spin(word.ea, 0);
  });
  cell.ppe_program([&](ppe& p) {
    const at_end guard{[&] { p.store(word.ea, 1u); }};
    p.sleep("what never comes");
  });
  EXPECT_NE(how_it_ends(cell).find("deadlock"), std::string::npos);
  EXPECT_EQ(word[0], 1u);
}

// What such a stack holds is lost, the exception that unwinds it included.
#if !defined(__SANITIZE_ADDRESS__)
TEST(cell_unwind, a_destructor_that_tries_for_ever_is_left) {
  machine cell(machine_file::named("cell-ps3"));
  cell.spe_program(0, [](spe& s) {
    const at_end guard{[&] {
      while (s.mailbox_count() == 0) {
      }
    }};
    s.read_signal(1);
  });
  EXPECT_NE(how_it_ends(cell).find("deadlock"), std::string::npos);
}
#endif

}  // namespace
}  // namespace lev::cell
