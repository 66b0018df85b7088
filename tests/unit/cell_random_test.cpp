// Programs made at random for a simulated Cell: legal ones give the bytes that they should, and the
// same run a hundred times; illegal calls are errors by name, wherever they stand; what waits for
// ever is named with what it waits for; what only looks for ever is told so. Nothing hangs.
#include <leveret/cell.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace lev::cell {
namespace {

constexpr unsigned spes = 4;
constexpr std::uint32_t area = 8192;  // of each SPE, in memory and in its store

machine_file small_cell() {
  return machine_file::named("cell-ps3").with("machine.spes", spes).with("machine.memory", 16);
}

struct range {
  std::uint32_t begin;
  std::uint32_t end;
  bool meets(const range& other) const { return begin < other.end && other.begin < end; }
};

// A transfer that nobody has waited for yet.
struct pending {
  unsigned tag;
  range here;
  range there;
};

// One SPE's program: transfers between its two areas, and what both should hold.
struct mover {
  spe& s;
  random_source& random;
  array<std::uint8_t> memory;
  local<std::uint8_t> store{};
  std::vector<std::uint8_t> memory_should{};
  std::vector<std::uint8_t> store_should{};
  std::vector<pending> open{};

  // Legal: 1, 2, 4, 8 or 16 n bytes, both addresses alike in their last four bits.
  void one() {
    const bool is_small = random.below(4) == 0;
    const std::uint32_t bytes = is_small ? 1u << random.below(4) : 16 * (1 + random.below(64));
    const std::uint32_t unit = bytes < 16 ? bytes : 16;
    const std::uint32_t low = random.below(16 / unit) * unit;
    const auto place = [&] { return random.below((area - bytes - 16) / 16) * 16 + low; };
    const std::uint32_t here = place();
    const std::uint32_t there = place();
    pending p{random.below(32), {here, here + bytes}, {there, there + bytes}};
    const order o = settle(p);
    open.push_back(p);
    if (random.below(2) == 0) {
      std::memcpy(&store_should[here], &memory_should[there], bytes);
      s.get(store.at(here), memory.at(there), bytes, p.tag, o);
    } else {
      std::memcpy(&memory_should[there], &store_should[here], bytes);
      s.put(store.at(here), memory.at(there), bytes, p.tag, o);
    }
  }

  // Transfers that overlap must end before: by a fence or barrier, if they have one tag, or a wait.
  order settle(pending& p) {
    std::uint32_t tags = 0;
    for (const pending& other : open)
      if (other.here.meets(p.here) || other.there.meets(p.there)) tags |= 1u << other.tag;
    if (tags == 0) return static_cast<order>(random.below(3));
    if ((tags & (tags - 1)) == 0 && random.below(2) == 0) {
      p.tag = static_cast<unsigned>(__builtin_ctz(tags));
      return random.below(2) == 0 ? order::fence : order::barrier;
    }
    wait(tags);
    return order::none;
  }

  void wait(std::uint32_t tags) {
    s.wait_all(tags);
    std::erase_if(open, [&](const pending& p) { return (tags >> p.tag & 1) != 0; });
  }

  // A list of lines, gathered from places of memory.
  void gather() {
    wait(~0u);
    const unsigned count = 1 + random.below(8);
    const auto list = s.allocate<list_element>(count, 8);
    const std::uint32_t here = random.below((area - 128 * count) / 128) * 128;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t there = random.below(area / 128) * 128;
      list[i] = {128, static_cast<std::uint32_t>(memory.at(there))};
      std::memcpy(&store_should[here + 128 * i], &memory_should[there], 128);
    }
    s.get_list(store.at(here), memory.ea, list, 7);
    wait(1u << 7);
  }

  void run(unsigned steps) {
    store = s.allocate<std::uint8_t>(area);
    memory_should.assign(memory.data, memory.data + area);
    store_should.assign(store.data, store.data + area);
    for (unsigned i = 0; i < steps; ++i) {
      if (random.below(16) == 0)
        gather();
      else
        one();
      if (random.below(4) == 0) s.compute(cycles(random.below(3000)));
    }
    wait(~0u);
    EXPECT_EQ(std::memcmp(store.data, store_should.data(), area), 0) << "SPE " << s.index();
    EXPECT_EQ(std::memcmp(memory.data, memory_should.data(), area), 0) << "SPE " << s.index();
  }
};

// Adds one to a word that all share; others write its line meanwhile.
void add_one(spe& s, const local<std::uint32_t>& line, ea_t word) {
  do {
    s.getllar(line.ls, word);
    ++line[0];
  } while (!s.putllc(line.ls, word));
}

void converse(ppe& p, unsigned index, unsigned letters, ea_t shared) {
  for (std::uint32_t i = 1; i <= letters; ++i) {
    p.write_mailbox(index, i);
    EXPECT_EQ(p.read_mailbox(index), i + 1000);
    while (!p.store_conditional(shared, p.load_reserved(shared) + 1)) {
    }
  }
}

struct seen {
  std::uint64_t hash;
  virtual_time time;
  bool operator==(const seen&) const = default;
};

seen run_legal(std::uint64_t program, std::uint64_t schedule) {
  options o;
  o.seed = schedule;
  machine cell(small_cell(), o);
  const auto shared = cell.memory<std::uint32_t>(32);
  std::vector<random_source> sources;
  std::vector<array<std::uint8_t>> areas;
  for (unsigned i = 0; i < spes; ++i) {
    sources.emplace_back(program * spes + i);
    areas.push_back(cell.memory<std::uint8_t>(area));
    for (std::uint32_t k = 0; k < area; ++k)
      areas[i][k] = static_cast<std::uint8_t>(sources[i].next());
  }
  const unsigned letters = 3;
  for (unsigned i = 0; i < spes; ++i) {
    cell.spe_program(i, [&, i](spe& s) {
      mover m{s, sources[i], areas[i]};
      m.run(60);
      const auto line = s.allocate<std::uint32_t>(32);
      for (unsigned k = 0; k < letters; ++k) {
        s.write_mailbox(s.read_mailbox() + 1000);
        add_one(s, line, shared.ea);
      }
    });
    cell.ppe_program([&, i](ppe& p) { converse(p, i, letters, shared.ea); });
  }
  const report r = cell.run();
  EXPECT_EQ(shared[0], 2 * spes * letters) << "program " << program;
  return {r.hash, r.time};
}

TEST(cell_random, legal_programs_give_the_right_bytes) {
  for (std::uint64_t program = 0; program < 60; ++program) run_legal(program, program % 3);
}

TEST(cell_random, a_hundred_replays_are_one_run) {
  const seen first = run_legal(7, 5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(run_legal(7, 5), first);
  EXPECT_NE(run_legal(8, 5).hash, first.hash);
}

struct illegal {
  const char* what;
  error_kind kind;
  std::function<void(spe&)> call;
};

// `there` is an address of memory.
std::vector<illegal> illegal_calls(ea_t there) {
  using k = error_kind;
  return {
      {"size", k::illegal_transfer, [=](spe& s) { s.get(0x8000, there, 24, 0); }},
      {"no size", k::illegal_transfer, [=](spe& s) { s.put(0x8000, there, 0, 0); }},
      {"long", k::illegal_transfer, [=](spe& s) { s.get(0x8000, there, 16400, 0); }},
      {"low bits", k::illegal_transfer, [=](spe& s) { s.get(0x8004, there, 4, 0); }},
      {"tag", k::bad_tag, [=](spe& s) { s.put(0x8000, there, 16, 32); }},
      {"queued line's tag", k::bad_tag, [=](spe& s) { s.putqlluc(0x8000, there, 99); }},
      {"kernel", k::bad_address, [=](spe& s) { s.put(0, there, 16, 0); }},
      {"beyond the store", k::bad_address, [=](spe& s) { s.get(0x7ffffff0, there, 16, 0); }},
      {"null", k::bad_address, [](spe& s) { s.get(0x8000, 0, 16, 0); }},
      {"end of addresses", k::bad_address, [](spe& s) { s.get(0x8000, ~ea_t{15}, 16, 0); }},
      {"line", k::illegal_transfer, [=](spe& s) { s.getllar(0x8010, there); }},
      {"line of a store", k::bad_address,
       [](spe& s) { s.putlluc(0x8000, (ea_t{1} << 40) + 0x8000); }},
      {"list", k::illegal_transfer,
       [=](spe& s) { s.get_list(0x8000, there, local<list_element>{0x9000, nullptr, 0}, 0); }},
      {"long list", k::illegal_transfer,
       [=](spe& s) {
         s.get_list(0x8000, there, local<list_element>{0x9000, nullptr, (1u << 29) + 1}, 0);
       }},
      {"list beyond the store", k::bad_address,
       [=](spe& s) { s.get_list(0x8000, there, local<list_element>{0x3fff8, nullptr, 2}, 0); }},
      {"store", k::store_overflow, [](spe& s) { s.allocate<char>(1 << 20); }},
      {"a count that does not fit", k::store_overflow,
       [](spe& s) { s.allocate<std::uint64_t>((std::size_t{1} << 61) + 1); }},
      {"alignment", k::bad_call, [](spe& s) { s.allocate<char>(16, 0); }},
      {"odd alignment", k::bad_call, [](spe& s) { s.allocate<char>(16, 48); }},
      {"time below 0", k::bad_call, [](spe& s) { s.compute(cycles(-1)); }},
      {"time without end", k::bad_call, [](spe& s) { s.compute(cycles(INT64_MAX)); }},
      {"poll below 0", k::bad_call, [](spe& s) { s.poll(cycles(INT64_MIN)); }},
      {"lap", k::bad_call,
       [](spe& s) { s.spin(local<std::uint32_t>{0x8000, nullptr, 1}, 0, cycles(0)); }},
      {"spin in the kernel", k::bad_address,
       [](spe& s) { s.spin(local<std::uint32_t>{0, nullptr, 1}, 0, cycles(9)); }},
      {"signal", k::bad_call, [](spe& s) { s.read_signal(3); }},
      {"signal to nobody", k::bad_call, [](spe& s) { s.send_signal(77, 1, 1, 0); }},
      {"join", k::bad_call, [](spe& s) { s.join(5); }},
      {"join oneself", k::bad_call, [](spe& s) { s.join(0); }},
      {"no body", k::bad_call, [](spe& s) { s.spawn(nullptr); }},
  };
}

// The error of a run of that program on an SPE, among others that do what is legal.
void expect_error(machine& cell, error_kind kind, const std::string& what) {
  try {
    cell.run();
    ADD_FAILURE() << what << " was taken";
  } catch (const error& e) {
    EXPECT_EQ(e.kind, kind) << what << ": " << e.what();
    EXPECT_GT(std::strlen(e.what()), 10u);
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << ": " << e.what();
  }
}

TEST(cell_random, illegal_calls_are_errors_by_name) {
  random_source random(3);
  for (unsigned i = 0; i < illegal_calls(0).size(); ++i) {
    machine cell(small_cell());
    const auto memory = cell.memory<std::uint8_t>(area);
    const illegal bad = illegal_calls(memory.ea)[i];
    for (unsigned k = 0; k < spes; ++k)
      cell.spe_program(k, [&, k](spe& s) {
        for (unsigned turn = 0; turn < 20; ++turn) {
          s.get(0x8000, memory.ea, 128, turn);
          if (k == 1 && turn == 7) bad.call(s);
          s.compute(cycles(random.below(500)));
          if (turn % 3 == 0) s.wait_all(~0u);
        }
      });
    expect_error(cell, bad.kind, bad.what);
    EXPECT_THROW(cell.run(), error);  // it says to make another one
  }
}

TEST(cell_random, illegal_calls_of_the_ppe_and_of_the_host_are_errors) {
  using call = std::function<void(ppe&)>;
  const ea_t in_store = machine(small_cell()).store_ea(0, 0x8000);
  const std::pair<error_kind, call> calls[] = {
      {error_kind::bad_call, [](ppe& p) { p.wake(nullptr); }},
      {error_kind::bad_call, [](ppe& p) { p.yield_to(nullptr); }},
      {error_kind::bad_call, [](ppe& p) { p.write_mailbox(99, 1); }},
      {error_kind::bad_call, [](ppe& p) { p.compute(cycles(-1)); }},
      {error_kind::bad_call, [](ppe& p) { p.compute(virtual_time::max()); }},
      {error_kind::bad_address, [](ppe& p) { (void)p.load<std::uint32_t>(0); }},
      {error_kind::bad_address, [](ppe& p) { p.store<std::uint32_t>(0x20002, 1); }},
      {error_kind::bad_address, [=](ppe& p) { (void)p.load_reserved(in_store); }},
      {error_kind::bad_address, [=](ppe& p) { (void)p.store_conditional(in_store, 1); }},
      {error_kind::bad_address, [=](ppe& p) { (void)p.spin(in_store, 1); }},
      {error_kind::bad_call, [](ppe& p) { p.write_signal(0, 0, 1); }},
      {error_kind::bad_call, [](ppe& p) { p.write_signal(99, 1, 1); }},
      {error_kind::illegal_transfer, [](ppe& p) { p.proxy_get(0, 0x8000, 0x20000, 3, 0); }},
      {error_kind::bad_tag, [](ppe& p) { p.proxy_put(0, 0x8000, 0x20000, 16, 40); }},
  };
  unsigned number = 0;
  for (const auto& [kind, bad] : calls) {
    machine cell(small_cell());
    (void)cell.memory<char>(4096);
    cell.ppe_program(bad);
    expect_error(cell, kind, "call " + std::to_string(number++));
  }
  machine cell(small_cell());
  EXPECT_THROW(cell.memory<std::uint64_t>((std::size_t{1} << 61) + 1), error);
  EXPECT_THROW(cell.spe_program(0, nullptr), error);
  EXPECT_THROW(cell.ppe_program(nullptr), error);
  EXPECT_THROW(cell.host(1), error);
  cell.ppe_program([&](ppe&) { cell.run(); });
  expect_error(cell, error_kind::bad_call, "a run inside of a run");
  options tiny;
  tiny.stack_bytes = 0;
  EXPECT_THROW(machine(small_cell(), tiny), error);
}

// It is not taken, and so does not count as one that a run has run.
TEST(cell_random, a_program_without_memory_for_its_stack_can_be_given_again) {
  options huge;
  huge.stack_bytes = std::size_t{1} << 60;
  machine cell(small_cell(), huge);
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW(cell.spe_program(0, [](spe&) {}), std::bad_alloc) << "time " << i;
}

TEST(cell_random, a_deadlock_names_each_and_what_it_waits_for) {
  machine cell(small_cell());
  const auto line = cell.memory<std::uint32_t>(32);
  cell.spe_program(0, [](spe& s) { s.read_mailbox(); }, "reader");
  cell.spe_program(1, [](spe& s) { s.read_signal(2); });
  cell.spe_program(2, [&](spe& s) {
    const auto here = s.allocate<std::uint32_t>(32);
    s.getllar(here.ls, line.ea);
    s.wait_lost_reservation();
  });
  cell.spe_program(3, [](spe& s) {
    s.write_mailbox(1);
    s.write_mailbox(2);
  });
  cell.ppe_program([](ppe& p) { p.read_interrupt_mailbox(0); }, "first");
  cell.ppe_program([](ppe& p) { p.sleep("what never comes"); }, "second");
  try {
    cell.run();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind, error_kind::deadlock);
    const std::string text = e.what();
    for (const char* part :
         {"SPE 0 (reader) waits for a letter in its mailbox", "SPE 1 waits for a signal",
          "SPE 2 waits for the loss of its reservation",
          "SPE 3 waits for room in its outbound mailbox",
          "PPE first waits for an interrupt of an SPE's mailbox",
          "PPE second waits for what never comes"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(cell_random, looking_for_ever_is_no_progress) {
  using program = std::function<void(machine&)>;
  const auto of_spe = [](std::function<void(spe&)> p) -> program {
    return [p](machine& cell) { cell.spe_program(0, p); };
  };
  const auto of_ppe = [](std::function<void(ppe&, ea_t)> p) -> program {
    return [p](machine& cell) {
      const ea_t word = cell.memory<std::uint32_t>(32).ea;
      for (int i = 0; i < 3; ++i) cell.ppe_program([=](ppe& me) { p(me, word); });
    };
  };
  const program programs[] = {
      of_spe([](spe& s) {
        for (;;) s.yield();
      }),
      of_spe([](spe& s) {
        unsigned other = 0;
        const unsigned one = s.spawn([&] { s.join(other); });
        other = s.spawn([&] { s.join(one); });
        s.join(one);
      }),
      of_spe([](spe& s) {
        const auto line = s.allocate<std::uint32_t>(32);
        while (line[0] == 0) s.getllar(line.ls, 0x20000);
      }),
      of_spe([](spe& s) {
        while (s.mailbox_count() == 0) s.poll(cycles(10));
      }),
      of_spe([](spe& s) {
        s.write_interrupt_mailbox(1);
        while (!s.try_write_interrupt_mailbox(2)) {
        }
      }),
      of_ppe([](ppe& p, ea_t) {
        for (;;) p.yield();
      }),
      of_ppe([](ppe& p, ea_t) {
        for (;;) p.yield_to(p.self());
      }),
      of_ppe([](ppe& p, ea_t word) {
        while (p.load<std::uint32_t>(word) == 0) {
        }
      }),
      of_ppe([](ppe& p, ea_t) { p.read_mailbox(1); }),
  };
  unsigned number = 0;
  for (const program& p : programs) {
    options o;
    o.polls_max = 5000;
    machine cell(small_cell(), o);
    p(cell);
    expect_error(cell, error_kind::no_progress, "program " + std::to_string(number++));
  }
}

TEST(cell_random, several_threads_may_wait_for_one_mailbox) {
  machine cell(small_cell());
  unsigned sum = 0;
  constexpr unsigned letters = 9;
  for (int i = 0; i < 3; ++i)
    cell.ppe_program([&](ppe& p) {
      for (unsigned k = 0; k < letters / 3; ++k) sum += p.read_interrupt_mailbox(0);
    });
  cell.spe_program(0, [](spe& s) {
    for (unsigned k = 1; k <= letters; ++k) s.write_interrupt_mailbox(k);
  });
  cell.run();
  EXPECT_EQ(sum, letters * (letters + 1) / 2);
  for (int i = 0; i < 3; ++i)
    cell.ppe_program([&](ppe& p) {
      for (unsigned k = 0; k < letters / 3; ++k) sum += p.read_mailbox(1);
    });
  cell.spe_program(1, [](spe& s) {
    for (unsigned k = 1; k <= letters; ++k) s.write_mailbox(k);
  });
  cell.run();
  EXPECT_EQ(sum, letters * (letters + 1));
}

TEST(cell_random, a_proxy_queue_takes_no_more_than_it_has_room_for) {
  machine cell(small_cell());
  const auto memory = cell.memory<std::uint8_t>(area);
  for (unsigned i = 0; i < area; ++i) memory[i] = static_cast<std::uint8_t>(i * 7);
  bool is_right = false;
  cell.spe_program(0, [&](spe& s) {
    const auto here = s.allocate<std::uint8_t>(area, 0x8000);
    (void)s.read_mailbox();
    is_right = std::memcmp(here.data, memory.data, area) == 0;
  });
  for (unsigned half = 0; half < 2; ++half)
    cell.ppe_program([&, half](ppe& p) {
      for (unsigned i = half; i < area / 128; i += 2)
        p.proxy_get(0, 0x8000 + 128 * i, memory.at(128 * i), 128, half);
      p.wait_proxy(0, 3);
      if (half == 0) p.compute(cycles(100'000));
      if (half == 0) p.write_mailbox(0, 1);
    });
  cell.run();
  EXPECT_TRUE(is_right);
}

}  // namespace
}  // namespace lev::cell
