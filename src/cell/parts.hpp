// The parts of a simulated Cell: memory, SPEs, PPEs, and their messages to each other.
#pragma once

#include <leveret/cell.hpp>

#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cell/bus.hpp"
#include "cell/facts.hpp"
#include "cell/mfc.hpp"
#include "cell/near_cache.hpp"
#include "virtual/homes.hpp"
#include "virtual/loop.hpp"
#include "virtual/processor.hpp"

namespace lev::cell {

constexpr ea_t memory_begin = 0x20000;
constexpr ea_t stores_begin = ea_t{1} << 40;
constexpr ea_t store_span = ea_t{1} << 30;
constexpr ea_t no_line = ~ea_t{0};

constexpr ea_t line_of(ea_t ea) {
  return ea & ~ea_t{line_bytes - 1};
}

// Letters one way. Those on their way over the EIB take room already.
struct mailbox {
  unsigned entries = 1;
  unsigned coming = 0;
  std::deque<std::uint32_t> letters{};
  virt::actor* reader = nullptr;  // an SPE that waits for a letter
  virt::actor* writer = nullptr;  // an SPE that waits for room
  std::size_t claimed = 0;        // letters, from the front, that PPE threads are about to take
  std::vector<ppe_parts*> sleepers{};  // PPE threads that wait for an interrupt

  bool has_room() const { return letters.size() + coming < entries; }
  bool has_letter() const { return letters.size() > claimed; }
};

// A word that a program polls until it changes.
struct watcher {
  ea_t ea = 0;
  std::uint32_t bytes = 0;
  virt::actor* actor = nullptr;
  ppe_parts* thread = nullptr;
};

// In the list as long as the program waits, even if its stack is unwound.
class watching {
 public:
  watching(std::vector<watcher*>& all, watcher& one) : all_(all), one_(&one) {
    all_.push_back(one_);
  }
  ~watching() { std::erase(all_, one_); }
  watching(const watching&) = delete;

 private:
  std::vector<watcher*>& all_;
  watcher* one_;
};

struct spe_parts {
  spe_parts(machine_parts& m, unsigned index);
  // All of its store but kernel and stacks is free.
  void free_all();

  machine_parts& home;
  const unsigned index;
  const unsigned chip;
  std::string name;
  std::function<void(spe&)> program;

  struct give_back {
    void operator()(std::byte* all) const { std::free(all); }
  };
  std::unique_ptr<std::byte, give_back> bytes;  // untouched pages take no memory
  std::byte* store = nullptr;
  ls_t store_end = 0;
  ls_t free_from = 0;  // behind the kernel and what was allocated
  ls_t free_to = 0;    // before the stacks

  mfc queue;
  mfc proxy;
  mailbox in;
  mailbox out;
  mailbox interrupt;
  std::uint32_t signals[2] = {};
  virt::actor* signal_reader = nullptr;

  ea_t reserved = no_line;
  virt::actor* reservation_waiter = nullptr;
  std::vector<ea_t> atomic_lines;  // that the atomic unit holds, the latest last

  std::vector<virt::actor*> turns;  // cooperative threads, in the order of their turns
  std::vector<virt::actor*> threads;
  std::vector<watcher*> watchers;
  spe_counts counts;
};

struct ppe_parts {
  machine_parts& home;
  const unsigned chip;
  std::string name;
  int pinned;
  std::function<void(ppe&)> program;
  virt::actor* actor = nullptr;
  virt::processor::thread* thread = nullptr;
  bool awaits_interrupt = false;
  bool was_called = false;  // by wake(), which its next sleep() takes
  ea_t reserved = no_line;

  virt::processor& processor() const;
};

// Something that happens later: a store over MMIO that arrives, a letter, an interrupt.
struct arrival final : virt::target {
  explicit arrival(machine_parts& m) : home(m) {}
  void on_event(std::uint64_t number) override;

  machine_parts& home;
  std::deque<std::pair<std::uint64_t, std::function<void()>>> pending;
  std::uint64_t numbers = 0;
};

struct machine_parts {
  machine_parts(const machine_file& file, const options& o);
  ~machine_parts();

  facts numbers;
  options opts;
  clock_rate clock;
  virt::loop loop;
  bus wires;
  virt::homes lines{line_bytes};
  std::vector<near_cache> near;  // of each chip's PPE
  std::byte* memory = nullptr;
  std::uint64_t chip_bytes = 0;
  std::vector<std::uint64_t> used;  // of each chip's memory
  std::vector<std::unique_ptr<spe_parts>> spes;
  std::vector<std::unique_ptr<ppe_parts>> threads;
  std::vector<std::unique_ptr<virt::processor>> processors;
  std::vector<watcher*> watchers;
  arrival later{*this};
  std::deque<unsigned> interrupts;         // SPEs whose letters are not read yet, in order
  std::vector<ppe_parts*> any_sleepers{};  // wait for an interrupt of any SPE
  bool has_failed = false;

  virtual_time time_of(fact f) const { return clock.time_of(numbers.cycles(f)); }
  ls_t bytes_of(fact kib) const { return static_cast<ls_t>(numbers.whole(kib) << 10); }
  // The target at an effective address. Throws error (bad_address).
  bus_target target_of(ea_t ea) const;
  void* host_of(ea_t ea) const;
  bool has_range(ea_t ea, std::uint64_t bytes) const;
  bool has_in_store(unsigned spe_index, ls_t ls, std::uint64_t bytes) const;
  [[noreturn]] void refuse_range(ea_t ea, std::uint64_t bytes, const std::string& who) const;
  [[noreturn]] void refuse_store(unsigned spe_index, ls_t ls, std::uint64_t bytes,
                                 const std::string& who) const;
  // `who` makes the beginning of the error's text: no text is made if nothing is wrong.
  template <class Who>
  void check_range(ea_t ea, std::uint64_t bytes, const Who& who) const {
    if (!has_range(ea, bytes)) refuse_range(ea, bytes, who());
  }
  void* store_of(unsigned spe_index, ls_t ls) const { return spes[spe_index]->store + ls; }
  template <class Who>
  void check_store(unsigned spe_index, ls_t ls, std::uint64_t bytes, const Who& who) const {
    if (!has_in_store(spe_index, ls, bytes)) refuse_store(spe_index, ls, bytes, who());
  }
  void check_list_element(unsigned spe_index, command::kind k, std::size_t number, ls_t ls, ea_t ea,
                          std::uint32_t bytes) const;

  // Bytes have changed: reservations are lost, caches have the line or not, watchers look.
  // `by` is the SPE, or -1 for the PPE.
  void was_written(ea_t ea, std::uint32_t bytes, int by, bool through_caches);
  void store_was_written(unsigned spe_index, ls_t ls, std::uint32_t bytes);
  // `thread`: the PPE thread that has written, which keeps its own.
  void lose_reservations(ea_t ea, std::uint32_t bytes, int by, const ppe_parts* thread = nullptr);
  // All PPEs but `but` no longer have them next to their pipelines.
  void drop_near(ea_t ea, std::uint32_t bytes, unsigned but);
  void look(std::vector<watcher*>& all, ea_t ea, std::uint32_t bytes);

  void deliver_signal(unsigned spe_index, unsigned which, std::uint32_t value);
  void after(virtual_time d, std::function<void()> what);

  unsigned ppe_agent(unsigned chip) const { return chip; }
  unsigned spe_agent(unsigned index) const {
    return static_cast<unsigned>(processors.size()) + index;
  }
};

std::string name_of(const spe_parts& s);

// The SPE's program gives a legal command to its MFC; it waits for room.
void issue(spe_parts& s, command c);

// The time that a program may let pass at once; `who` and `call` name the program and its call.
// Throws error (bad_call).
virtual_time checked_time(const machine_parts& m, cycles n, const std::string& who,
                          const char* call);
virtual_time checked_time(virtual_time d, const std::string& who, const char* call);
// Throws error (bad_tag).
void check_tag(const spe_parts& s, unsigned tag, const char* call);

}  // namespace lev::cell
