// A simulated Cell/B.E. to program by hand: SPEs with 256 KiB of local store and an MFC, a PPE,
// main memory, and a clock of their own. For teaching, and for trying a design.
//
//   lev::cell::machine cell(lev::cell::machine_file::named("cell-ps3"));
//   auto numbers = cell.memory<float>(1024);
//   cell.spe_program(0, [&](lev::cell::spe& s) {
//     auto block = s.allocate<float>(1024);
//     s.get(block, numbers.ea, 0);
//     s.wait_all(1 << 0);
//     s.compute(lev::cycles(1024));
//   });
//   const lev::cell::report took = cell.run();
//
// Programs are functions. Each runs on a stack of its own, all on the calling thread, and their
// actions take virtual time. A transfer takes as long as MFC, EIB and memory need, compute() as
// long as it is told, and C++ code by itself no time. Equal programs and seeds give equal times and
// equal hashes.
//
// Bytes move when a transfer ends. Until then the target of a get is full of 0xd5, and a put reads
// its source at the end: a wait that is missing shows as wrong data.
//
// Errors are lev::cell::error, thrown where the program made the mistake and, if it is not caught
// there, by machine::run(), which names the program. A deadlock error says what each program waits
// for. Then all programs are ended by an exception, and calls throw it. Only in destructors that
// run while an exception unwinds the stack do they return at once, and what they return means
// nothing. A destructor that waits at the normal end of its scope must be noexcept(false), or the
// process ends (std::terminate). An error whose destructors wait for what never comes is lost:
// run() throws the deadlock.
//
// Not thread-safe: a machine belongs to one thread. Several machines may run on several threads.
#ifndef LEVERET_CELL_HPP
#define LEVERET_CELL_HPP

#include <leveret/cell_file.hpp>
#include <leveret/cell_ppe.hpp>
#include <leveret/virtual_time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lev::cell {

constexpr std::size_t line_bytes = 128;
constexpr std::size_t largest_transfer = 16384;
constexpr unsigned tag_count = 32;

// Main memory: where it is for the machine, and for the code of this process.
template <class T>
struct array {
  ea_t ea = 0;
  T* data = nullptr;
  std::size_t size = 0;
  T& operator[](std::size_t i) const { return data[i]; }
  ea_t at(std::size_t i) const { return ea + i * sizeof(T); }
};

// The same in a local store.
template <class T>
struct local {
  ls_t ls = 0;
  T* data = nullptr;
  std::size_t size = 0;
  T& operator[](std::size_t i) const { return data[i]; }
  ls_t at(std::size_t i) const { return ls + static_cast<ls_t>(i * sizeof(T)); }
  std::uint32_t bytes() const { return static_cast<std::uint32_t>(size * sizeof(T)); }
};

// The order of a transfer among others of its tag group in the queue. fence: it begins when those
// before it have ended. barrier: the same, and those behind it wait for its end.
enum class order { none, fence, barrier };

// An element of a list: a number of bytes at the low half of an effective address.
struct list_element {
  std::uint32_t bytes;
  std::uint32_t low;
};

struct options {
  // Not 0: another legal order of simultaneous events.
  std::uint64_t seed = 0;
  // Fill the targets of gets until the data arrives.
  bool poison = true;
  // Each run ends with an error after this much virtual time.
  virtual_time time_max = virtual_time::max() / 2;
  std::size_t stack_bytes = std::size_t{256} << 10;
  // This many polls in a row, with nothing else to happen or without time, mean no progress.
  std::uint64_t polls_max = 2'000'000;
  // No call of progress() for this long means no progress. Without it, programs that transfer or
  // compute while they poll for something that never comes go on until time_max.
  virtual_time progress_max = virtual_time::max() / 2;
};

struct spe_counts {
  std::uint64_t transfers = 0;  // elements of lists are transfers
  std::uint64_t bytes = 0;
  virtual_time computed{};
  virtual_time transfer_waits{};  // in wait_all, wait_any, and for room in the queue
};

struct report {
  virtual_time time{};       // from the start to the end of the last program
  std::uint64_t events = 0;  // of the simulation
  std::uint64_t hash = 0;    // of everything that happened since the machine was made, in order
  std::uint64_t ppe_switches = 0;
  std::vector<spe_counts> spes;
};

class spe;
struct machine_parts;
struct spe_parts;

class machine {
 public:
  static constexpr int anywhere = -1;

  // Throws error (bad_machine) when the file does not describe a Cell.
  explicit machine(const machine_file& file, const options& o = {});
  ~machine();
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  unsigned spe_count() const;
  unsigned chip_count() const;
  unsigned chip_of(unsigned spe_index) const;  // throws error (bad_call) when there is none
  clock_rate clock() const;
  virtual_time now() const;

  // Zeroed main memory of a chip, on a line. Throws error (memory_full).
  template <class T>
  array<T> memory(std::size_t count, unsigned chip = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(alignof(T) <= line_bytes, "memory is aligned to lines of 128 bytes");
    const ea_t ea = allocate(count, sizeof(T), chip);
    return {ea, static_cast<T*>(host(ea)), count};
  }
  // The bytes of this process behind an effective address of memory or of a local store.
  void* host(ea_t ea) const;
  // Where a local store is mapped. Throws error (bad_call) for an SPE that does not exist, and for
  // a location beyond its store, which would be another one's.
  ea_t store_ea(unsigned spe_index, ls_t ls) const;

  // Programs for the next run(). Throws error (bad_call) for an SPE that does not exist or has one.
  void spe_program(unsigned index, std::function<void(spe&)> program, std::string name = {});
  // A thread of the PPE of a chip, on a hardware context of it or on any.
  void ppe_program(std::function<void(ppe&)> program, std::string name = {}, int context = anywhere,
                   unsigned chip = 0);

  // Runs all programs to their ends, then forgets them; memory stays as it is. Throws a program's
  // exception, or error (deadlock, no_progress, time_over), which names each program that had not
  // ended, what it waits for, and what it said by doing() and progress().
  report run();

  // The names of the constants of the machine file that were used since the machine was made.
  std::vector<std::string> constants_read() const;
  const machine_file& file() const;
  machine_parts& parts() { return *parts_; }

 private:
  ea_t allocate(std::size_t count, std::size_t each, unsigned chip);
  std::unique_ptr<machine_parts> parts_;
};

// Runs a program twice: `run` makes a machine, runs it and returns its report. Throws error
// (unrepeatable) if the two reports differ. The results may be right then, but something outside
// the machine, such as an address or a clock of the host, decides what happens.
report run_twice(const std::function<report()>& run);

// The interface of an SPE program. All calls are for the program itself and the threads it spawned.
class spe {
 public:
  explicit spe(spe_parts& parts) : parts_(parts) {}
  spe(const spe&) = delete;

  unsigned index() const;
  unsigned chip() const;
  virtual_time now() const;
  cycles now_cycles() const;
  // A number in [0, bound) from this program's own source.
  std::uint32_t random(std::uint32_t bound);

  // A piece of the local store, until the program ends; `align` is a power of two. Throws error
  // (store_overflow, bad_call).
  template <class T>
  local<T> allocate(std::size_t count, std::size_t align = line_bytes) {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(alignof(T) <= line_bytes, "a local store is aligned to lines of 128 bytes");
    const ls_t ls = allocate_bytes(count, sizeof(T), align);
    return {ls, static_cast<T*>(at(ls)), count};
  }
  std::size_t store_left() const;
  void* at(ls_t ls) const;

  // Time that the program's own work takes; polls say that it only looks for a change. Throws
  // error (bad_call) for a time below 0 or above an hour. Loads, getllar, yields and tests of
  // mailboxes and tags are polls, too: a run of nothing else makes no progress
  // (options::polls_max).
  void compute(cycles n);
  void poll(cycles n);

  // The program made progress: it did a task, not just read a lock. `ahead`: how long its next step
  // may take beyond options::progress_max. Costs no time.
  void progress(virtual_time ahead = {});
  // What the program is doing, such as "the lock of the queue", for error texts; null: nothing.
  void doing(const char* what);

  // Transfers between the local store and an effective address. Legal sizes are 1, 2, 4, 8 and
  // multiples of 16 to 16 KiB; addresses are multiples of the size, or of 16, and agree in their
  // last four bits. Waits while all entries of the queue are taken. Throws error (illegal_transfer,
  // bad_tag).
  void get(ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag, order o = order::none);
  void put(ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag, order o = order::none);
  template <class T>
  void get(const local<T>& to, ea_t from, unsigned tag, order o = order::none) {
    get(to.ls, from, to.bytes(), tag, o);
  }
  template <class T>
  void put(const local<T>& from, ea_t to, unsigned tag, order o = order::none) {
    put(from.ls, to, from.bytes(), tag, o);
  }
  // The elements lie in the local store, at a multiple of 8, and are read when the list begins.
  // `ea` gives the upper half of all addresses. Places in the local store follow each other.
  void get_list(ls_t ls, ea_t ea, const local<list_element>& list, unsigned tag,
                order o = order::none);
  void put_list(ls_t ls, ea_t ea, const local<list_element>& list, unsigned tag,
                order o = order::none);

  // wait_all() waits until all transfers of the tag groups in the mask have ended, wait_any() until
  // those of one group have. They return the groups that have none under way; tags_done() only
  // asks, for the price of a poll.
  std::uint32_t wait_all(std::uint32_t mask);
  std::uint32_t wait_any(std::uint32_t mask);
  std::uint32_t tags_done(std::uint32_t mask);

  // A line of memory, 128 bytes on both sides. getllar reads it and reserves it. putllc writes it
  // if no other unit has written it since, and returns whether it did. putlluc writes it in any
  // case, and putqlluc does so from the queue, when all transfers before it in its tag group have
  // ended.
  void getllar(ls_t ls, ea_t ea);
  bool putllc(ls_t ls, ea_t ea);
  void putlluc(ls_t ls, ea_t ea);
  void putqlluc(ls_t ls, ea_t ea, unsigned tag);
  // The event of a lost reservation.
  void wait_lost_reservation();

  // Mailboxes: four entries to the SPE, one to the PPE, one that interrupts it. Reads of an empty
  // one and writes to a full one wait.
  std::uint32_t read_mailbox();
  unsigned mailbox_count();
  void write_mailbox(std::uint32_t value);
  void write_interrupt_mailbox(std::uint32_t value);
  bool try_write_interrupt_mailbox(std::uint32_t value);
  // Signal 1 or 2: waits until it is not 0, takes it. One that is sent is there after the time of a
  // store to memory; it waits for no transfer, and no wait for its tag waits for it.
  std::uint32_t read_signal(unsigned which);
  void send_signal(unsigned to_spe, unsigned which, std::uint32_t value, unsigned tag);

  // Polls a word of the local store every `lap` until it is no longer `value`; returns the new one.
  std::uint32_t spin(const local<std::uint32_t>& word, std::uint32_t value, cycles lap);

  // Cooperative threads of this SPE, run in turns; the program is one of them. yield() costs a
  // switch; waits of MFC and mailbox stop them all.
  unsigned spawn(std::function<void()> body);
  void yield();
  void join(unsigned thread);

 private:
  ls_t allocate_bytes(std::size_t count, std::size_t each, std::size_t align);
  spe_parts& parts_;
};

}  // namespace lev::cell

#endif
