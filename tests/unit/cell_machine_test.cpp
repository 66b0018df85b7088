// A simulated Cell as a whole: locks, letters, errors, replays, golden times.
#include <leveret/cell.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace lev::cell {
namespace {

using namespace std::chrono_literals;

std::string error_of(machine& cell, error_kind* kind = nullptr) {
  try {
    cell.run();
  } catch (const error& e) {
    if (kind != nullptr) *kind = e.kind;
    return e.what();
  }
  return "it ended";
}

// Six SPEs and two PPE threads count one word up under reservations.
report count_together(std::uint64_t seed, std::uint32_t* sum) {
  options o;
  o.seed = seed;
  machine cell(machine_file::named("cell-ps3"), o);
  const auto word = cell.memory<std::uint32_t>(32);
  for (unsigned i = 0; i < cell.spe_count(); ++i)
    cell.spe_program(i, [&](spe& s) {
      const auto line = s.allocate<std::uint32_t>(32);
      for (int k = 0; k < 20; ++k) {
        do {
          s.getllar(line.ls, word.ea);
          ++line[0];
        } while (!s.putllc(line.ls, word.ea));
        s.compute(cycles(s.random(500)));
      }
    });
  for (int t = 0; t < 2; ++t)
    cell.ppe_program([&](ppe& p) {
      for (int k = 0; k < 20; ++k)
        while (!p.store_conditional(word.ea, p.load_reserved(word.ea) + 1)) {
        }
    });
  const report r = cell.run();
  *sum = word[0];
  return r;
}

TEST(cell_machine, reservations_lose_no_count) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::uint32_t sum = 0;
    count_together(seed, &sum);
    EXPECT_EQ(sum, 160u) << "seed " << seed;
  }
}

TEST(cell_machine, a_store_of_its_own_takes_no_reservation_from_a_thread) {
  machine cell(machine_file::named("cell-ps3"));
  const auto line = cell.memory<std::uint32_t>(32);
  bool own = false;
  bool other = true;
  cell.ppe_program([&](ppe& p) {
    std::uint32_t old = p.load_reserved(line.ea);
    p.store(line.at(1), 7u);
    own = p.store_conditional(line.ea, old + 1);
    old = p.load_reserved(line.ea);
    p.compute(10us);
    other = p.store_conditional(line.ea, old + 1);
  });
  cell.ppe_program([&](ppe& p) {
    p.compute(5us);
    p.store(line.at(2), 9u);
  });
  cell.run();
  EXPECT_TRUE(own);
  EXPECT_FALSE(other);
  EXPECT_EQ(line[0], 1u);
}

TEST(cell_machine, equal_seeds_give_one_hash) {
  std::uint32_t sum = 0;
  const report first = count_together(3, &sum);
  for (int i = 0; i < 100; ++i) {
    const report again = count_together(3, &sum);
    EXPECT_EQ(again.hash, first.hash);
    EXPECT_EQ(again.time, first.time);
  }
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 10; ++seed) hashes.insert(count_together(seed, &sum).hash);
  EXPECT_EQ(hashes.size(), 10u);
}

TEST(cell_machine, a_change_between_two_polls_is_not_seen) {
  machine cell(machine_file::named("cell-ps3"));
  std::uint32_t seen = 0;
  virtual_time at{};
  cell.spe_program(0, [&](spe& s) {
    const auto word = s.allocate<std::uint32_t>(1);
    word[0] = 0;
    s.write_mailbox(word.ls);
    seen = s.spin(word, 0, cycles(320'000));
    at = s.now();
  });
  cell.ppe_program([&](ppe& p) {
    const ea_t word = cell.store_ea(0, p.read_mailbox(0));
    p.store(word, 1u);
    p.compute(1us);
    p.store(word, 0u);
    p.compute(250us);
    p.store(word, 7u);
  });
  cell.run();
  EXPECT_EQ(seen, 7u);
  EXPECT_GT(at, virtual_time(300us));
}

// Written down from a run; equal for every compiler.
TEST(cell_machine, golden_times) {
  std::uint32_t sum = 0;
  const report r = count_together(0, &sum);
  EXPECT_EQ(r.time.count(), 11470937500);
  EXPECT_EQ(r.hash, 867576194093287382u);
}

TEST(cell_machine, a_deadlock_says_what_each_program_waits_for) {
  machine cell(machine_file::named("cell-ps3"));
  const auto word = cell.memory<std::uint32_t>(32);
  cell.spe_program(0, [](spe& s) { s.read_mailbox(); }, "reader");
  cell.spe_program(1, [](spe& s) {
    for (int i = 0; i < 2; ++i) s.write_mailbox(1);
  });
  cell.ppe_program([&](ppe& p) { p.spin(word.ea, 0); }, "master");
  error_kind kind = error_kind::bad_call;
  const std::string text = error_of(cell, &kind);
  EXPECT_EQ(kind, error_kind::deadlock);
  EXPECT_NE(text.find("SPE 0 (reader) waits for a letter in its mailbox"), std::string::npos);
  EXPECT_NE(text.find("SPE 1 waits for room in its outbound mailbox"), std::string::npos) << text;
  EXPECT_NE(text.find("PPE master waits for a change of a word in memory"), std::string::npos);
  EXPECT_NE(error_of(cell).find("make another one"), std::string::npos);
}

TEST(cell_machine, polling_for_ever_is_no_progress) {
  options o;
  o.polls_max = 10000;
  machine cell(machine_file::named("cell-ps3"), o);
  cell.spe_program(0, [](spe& s) {
    while (s.mailbox_count() == 0) {
    }
  });
  cell.ppe_program([](ppe& p) { p.read_mailbox(1); });
  error_kind kind = error_kind::bad_call;
  EXPECT_NE(error_of(cell, &kind).find("no progress"), std::string::npos);
  EXPECT_EQ(kind, error_kind::no_progress);
}

// A lock that nobody opens, looked at by transfers: neither a deadlock nor polls alone.
TEST(cell_machine, a_live_lock_names_its_programs) {
  options o;
  o.progress_max = 1ms;
  machine cell(machine_file::named("cell-ps3"), o);
  const auto lock = cell.memory<std::uint32_t>(32);
  for (unsigned i = 0; i < 2; ++i)
    cell.spe_program(i, [&](spe& s) {
      const auto word = s.allocate<std::uint32_t>(32);
      s.compute(cycles(1000));
      s.progress();
      s.doing("the lock of the queue");
      do {
        s.get(word.ls, lock.ea, 16, 0);
        s.wait_all(1);
      } while (word[0] == 0);
    });
  cell.ppe_program([](ppe& p) {
    p.doing("its own work");
    for (;;) p.compute(100us);
  });
  error_kind kind = error_kind::bad_call;
  const std::string text = error_of(cell, &kind);
  EXPECT_EQ(kind, error_kind::no_progress);
  EXPECT_NE(text.find("nobody has got on for 1000 us"), std::string::npos) << text;
  for (const char* who : {"SPE 0", "SPE 1"}) EXPECT_NE(text.find(who), std::string::npos);
  EXPECT_NE(text.find(", at the lock of the queue, got on last at 31"), std::string::npos);
  EXPECT_NE(text.find("PPE thread 0 goes on by itself, at its own work"), std::string::npos);
}

TEST(cell_machine, programs_that_get_on_have_as_much_time_as_they_say) {
  options o;
  o.progress_max = 1ms;
  machine cell(machine_file::named("cell-ps3"), o);
  cell.spe_program(0, [](spe& s) {
    for (int i = 0; i < 10; ++i) {
      s.compute(cycles(3'000'000));
      s.progress();
    }
    s.progress(1s);
    s.compute(cycles(3'200'000'000));
  });
  EXPECT_EQ(error_of(cell), "it ended");
  o.progress_max = virtual_time(0);
  EXPECT_THROW(machine(machine_file::named("cell-ps3"), o), error);
}

TEST(cell_machine, a_run_has_a_limit_of_time) {
  options o;
  o.time_max = 1ms;
  machine cell(machine_file::named("cell-ps3"), o);
  cell.spe_program(0, [](spe& s) {
    for (;;) s.compute(cycles(1000));
  });
  error_kind kind = error_kind::bad_call;
  error_of(cell, &kind);
  EXPECT_EQ(kind, error_kind::time_over);
}

TEST(cell_machine, what_a_program_throws_comes_out_of_run) {
  machine cell(machine_file::named("cell-ps3"));
  cell.spe_program(2, [](spe&) { throw std::out_of_range("mine"); });
  cell.spe_program(3, [](spe& s) { s.read_mailbox(); });
  EXPECT_THROW(cell.run(), std::out_of_range);
}

TEST(cell_machine, after_an_error_every_call_that_goes_on_says_to_make_another) {
  machine cell(machine_file::named("cell-ps3"));
  cell.spe_program(2, [](spe&) { throw std::out_of_range("mine"); });
  EXPECT_THROW(cell.run(), std::out_of_range);
  const auto says_so = [](const auto& call) {
    try {
      call();
    } catch (const error& e) {
      EXPECT_EQ(e.kind, error_kind::bad_call);
      return std::string(e.what()).find("make another one") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(says_so([&] { cell.run(); }));
  EXPECT_TRUE(says_so([&] { cell.spe_program(2, [](spe&) {}); }));
  EXPECT_TRUE(says_so([&] { cell.spe_program(3, [](spe&) {}); }));
  EXPECT_TRUE(says_so([&] { cell.ppe_program([](ppe&) {}); }));
}

TEST(cell_machine, programs_are_for_what_is_there) {
  machine cell(machine_file::named("cell-ps3"));
  EXPECT_THROW(cell.spe_program(6, [](spe&) {}), error);
  cell.spe_program(5, [](spe&) {});
  EXPECT_THROW(cell.spe_program(5, [](spe&) {}), error);
  EXPECT_THROW(cell.ppe_program([](ppe&) {}, "p", 2), error);
  EXPECT_THROW(cell.memory<char>(std::size_t{257} << 20), error);
  EXPECT_THROW(cell.memory<char>(16, 1), error);
  EXPECT_THROW(cell.chip_of(6), error);
}

// Of the error that a PPE program of `cell` ends with.
std::string error_of_ppe(machine& cell, std::function<void(ppe&)> program) {
  cell.ppe_program(std::move(program), "q");
  error_kind kind{};
  const std::string text = error_of(cell, &kind);
  EXPECT_EQ(kind, error_kind::bad_call) << text;
  return text;
}

TEST(cell_machine, a_pointer_is_not_null_and_a_thread_is_of_the_machine) {
  const machine_file ps3 = machine_file::named("cell-ps3");
  machine first(ps3), second(ps3), third(ps3), fourth(ps3);
  ppe_thread stranger = nullptr;
  first.ppe_program([&](ppe& p) { stranger = p.self(); });
  first.run();
  first.ppe_program([&](ppe& p) { stranger = p.self(), p.sleep("the end of the test"); });
  error_of(first);
  for (const std::string& text :
       {error_of_ppe(second, [](ppe& p) { p.try_read_mailbox(0, nullptr); }),
        error_of_ppe(third, [&](ppe& p) { p.mmio_store(third.store_ea(0, 0), nullptr, 4); })})
    EXPECT_NE(text.find("a pointer that is null"), std::string::npos) << text;
  const std::string text = error_of_ppe(fourth, [&](ppe& p) { p.wake(stranger); });
  EXPECT_NE(text.find("another machine"), std::string::npos) << text;
}

// Beyond its end is the store of the next SPE.
TEST(cell_machine, a_location_is_in_a_store) {
  const machine cell(machine_file::named("cell-ps3"));
  EXPECT_NE(cell.host(cell.store_ea(5, 0x3ffff)), nullptr);
  EXPECT_THROW((void)cell.store_ea(6, 0), error);
  EXPECT_THROW((void)cell.store_ea(0, 1u << 30), error);
}

TEST(cell_machine, two_runs_follow_each_other) {
  machine cell(machine_file::named("cell-qs20"));
  const auto numbers = cell.memory<int>(32, 1);
  for (int i = 1; i <= 2; ++i) {
    cell.spe_program(9, [&](spe& s) {
      const auto line = s.allocate<int>(32);
      s.get(line, numbers.ea, 0);
      s.wait_all(1);
      ++line[0];
      s.put(line, numbers.ea, 0);
      s.wait_all(1);
      EXPECT_EQ(s.chip(), 1u);
    });
    const report r = cell.run();
    EXPECT_EQ(numbers[0], i);
    EXPECT_EQ(r.spes[9].transfers, 2u);
    EXPECT_EQ(r.spes[9].bytes, 256u);
  }
}

TEST(cell_machine, a_report_is_of_its_run) {
  machine cell(machine_file::named("cell-ps3"));
  const auto run = [&] {
    cell.spe_program(0, [](spe& s) {
      s.compute(cycles(100));
      s.write_mailbox(1);
    });
    cell.ppe_program([](ppe& p) { p.read_mailbox(0); });
    return cell.run();
  };
  const report first = run();
  const report second = run();
  EXPECT_EQ(second.time, first.time);
  EXPECT_EQ(second.events, first.events);
  EXPECT_EQ(second.ppe_switches, first.ppe_switches);
  EXPECT_EQ(second.spes[0].computed, first.spes[0].computed);
  EXPECT_NE(second.hash, first.hash);
}

TEST(cell_machine, a_program_whose_equal_seeds_differ_is_unrepeatable) {
  std::int64_t of_the_host = 0;
  const auto run = [&](std::int64_t step) {
    return run_twice([&, step] {
      machine cell(machine_file::named("cell-ps3"));
      cell.spe_program(0, [&, step](spe& s) { s.compute(cycles(of_the_host += step)); });
      return cell.run();
    });
  };
  EXPECT_EQ(run(0).events, run(0).events);
  try {
    run(1);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind, error_kind::unrepeatable);
    EXPECT_NE(std::string(e.what()).find("unrepeatable, which is not to say wrong"),
              std::string::npos);
  }
  EXPECT_THROW(run_twice({}), error);
}

TEST(cell_machine, an_interrupt_wakes_a_thread_and_an_offload_comes_back) {
  machine cell(machine_file::named("cell-ps3"));
  cell.spe_program(0, [](spe& s) {
    s.compute(cycles(32000));
    s.write_interrupt_mailbox(12);
    s.write_interrupt_mailbox(13);
  });
  std::uint32_t sum = 0;
  cell.ppe_program([&](ppe& p) {
    sum += p.read_interrupt_mailbox(0);
    EXPECT_GT(p.now(), virtual_time(20us));
    sum += p.read_interrupt_mailbox(0);
  });
  cell.run();
  EXPECT_EQ(sum, 25u);
}

auto sleeps_after_interrupt(ppe_thread* self) {
  return [self](ppe& p) {
    *self = p.self();
    p.wait_interrupt();
    p.sleep("the call that may have come before");
    p.sleep("what never comes");
  };
}

// Another thread wakes one that waits for an interrupt while the interrupt is under way, or after a
// letter that woke others: what it sleeps for next is not ended by interrupts.
TEST(cell_machine, an_interrupt_ends_no_other_sleep) {
  for (const auto wakes_at : {199us, 200us, 201us, 202us, 205us}) {
    machine cell(machine_file::named("cell-ps3"));
    ppe_thread first = nullptr;
    cell.ppe_program(sleeps_after_interrupt(&first), "first", 0);
    cell.ppe_program(
        [](ppe& p) {
          p.read_interrupt_mailbox(0);
          p.compute(1ms);
          p.read_interrupt_mailbox(1);
        },
        "second", 1);
    cell.ppe_program(
        [&](ppe& p) {
          p.compute(wakes_at);
          p.wake(first);
        },
        "third", 0);
    for (unsigned i = 0; i < 2; ++i)
      cell.spe_program(i, [i](spe& s) {
        s.compute(cycles(3200 * (198 + 300 * i)));
        s.write_interrupt_mailbox(7);
      });
    error_kind kind = error_kind::bad_call;
    EXPECT_NE(error_of(cell, &kind).find("PPE first waits for what never"), std::string::npos);
    EXPECT_EQ(kind, error_kind::deadlock);
  }
}

TEST(cell_machine, an_interrupt_under_way_ends_no_other_sleep) {
  for (int woken_after = 0; woken_after < 10; ++woken_after) {
    machine cell(machine_file::named("cell-ps3"));
    ppe_thread first = nullptr;
    cell.ppe_program(sleeps_after_interrupt(&first), "first", 0);
    cell.ppe_program(
        [&](ppe& p) {
          p.compute(198us + woken_after * 1us);
          p.wake(first);
          p.compute(1ms);
          p.read_interrupt_mailbox(0);
        },
        "second", 1);
    cell.spe_program(0, [](spe& s) {
      s.compute(cycles(3200 * 200));
      s.write_interrupt_mailbox(7);
    });
    error_kind kind = error_kind::bad_call;
    EXPECT_NE(error_of(cell, &kind).find("PPE first waits for what never"), std::string::npos);
    EXPECT_EQ(kind, error_kind::deadlock);
  }
}

// A call comes before the thread waits for an interrupt, or while it does.
TEST(cell_machine, a_wait_for_an_interrupt_takes_no_call) {
  for (const auto called_at : {10us, 30us}) {
    machine cell(machine_file::named("cell-ps3"));
    ppe_thread first = nullptr;
    cell.ppe_program([&](ppe& p) {
      first = p.self();
      p.compute(20us);
      EXPECT_EQ(p.read_interrupt_mailbox(0), 7u);
      p.sleep("the call");
    });
    cell.ppe_program([&](ppe& p) {
      p.compute(called_at);
      p.wake(first);
    });
    cell.spe_program(0, [](spe& s) {
      s.compute(cycles(3200 * 40));
      s.write_interrupt_mailbox(7);
    });
    EXPECT_EQ(error_of(cell), "it ended");
  }
}

TEST(cell_machine, the_event_of_a_lost_reservation_and_signals) {
  machine cell(machine_file::named("cell-ps3"));
  const auto word = cell.memory<std::uint32_t>(32);
  std::uint32_t told = 0;
  cell.spe_program(0, [&](spe& s) {
    const auto line = s.allocate<std::uint32_t>(32);
    s.getllar(line.ls, word.ea);
    s.wait_lost_reservation();
    EXPECT_EQ(word[0], 8u);
    s.send_signal(1, 2, 0x30, 0);
  });
  cell.spe_program(1, [&](spe& s) {
    told = s.read_signal(1);
    told |= s.read_signal(2);
  });
  cell.ppe_program([&](ppe& p) {
    p.write_signal(1, 1, 0x4);
    p.compute(10us);
    p.store<std::uint32_t>(word.ea, 8);
  });
  cell.run();
  EXPECT_EQ(told, 0x34u);
}

TEST(cell_machine, constants_that_were_read_are_known) {
  machine cell(machine_file::named("cell-ps3"));
  const auto has = [&](const char* name) {
    for (const std::string& each : cell.constants_read())
      if (each == name) return true;
    return false;
  };
  EXPECT_TRUE(has("machine.spes"));
  EXPECT_FALSE(has("dma.write_latency"));
  const auto there = cell.memory<char>(128);
  cell.spe_program(0, [&](spe& s) {
    s.put(s.allocate<char>(128), there.ea, 0);
    s.wait_all(1);
  });
  cell.run();
  EXPECT_TRUE(has("dma.write_latency"));
  EXPECT_FALSE(has("dma.read_latency"));
}

}  // namespace
}  // namespace lev::cell
