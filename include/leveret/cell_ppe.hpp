// The addresses of a simulated Cell, and its PPE: the interface of programs on it. Include
// <leveret/cell.hpp>, which has the machine.
#ifndef LEVERET_CELL_PPE_HPP
#define LEVERET_CELL_PPE_HPP

#include <leveret/virtual_time.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lev::cell {

// An effective address: main memory begins at 128 KiB, local stores are mapped far above it.
using ea_t = std::uint64_t;
// An address in a local store.
using ls_t = std::uint32_t;

struct ppe_parts;
// A thread of a PPE program, as yield_to() and wake() name it.
using ppe_thread = ppe_parts*;

// The interface of a PPE program: a thread of the operating system, on a hardware context as long
// as it computes or spins. Threads share the contexts; each has its turn for a quantum.
class ppe {
 public:
  explicit ppe(ppe_parts& parts) : parts_(parts) {}
  ppe(const ppe&) = delete;

  virtual_time now() const;
  cycles now_cycles() const;
  std::uint32_t random(std::uint32_t bound);
  ppe_thread self() const { return &parts_; }
  int context() const;

  // Time of its own work.
  void compute(cycles n);
  void compute(virtual_time d);

  // As an SPE's: the program made progress; what it is doing.
  void progress(virtual_time ahead = {});
  void doing(const char* what);

  // Words of memory through the caches: the price depends on which of them has the line. A word of
  // a local store is read past them, there and back over the EIB.
  template <class T>
  T load(ea_t ea) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
    T value;
    load_bytes(ea, &value, sizeof(T));
    return value;
  }
  template <class T>
  void store(ea_t ea, const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
    store_bytes(ea, &value, sizeof(T));
  }
  // lwarx and stwcx, of words in main memory: load and reserve; store if no other unit has written
  // the line since.
  std::uint32_t load_reserved(ea_t ea);
  bool store_conditional(ea_t ea, std::uint32_t value);
  // Polls a word of main memory through the caches until it is no longer `value`; returns the new
  // value.
  std::uint32_t spin(ea_t ea, std::uint32_t value);

  // Writes up to 16 bytes into a local store, past the caches. They arrive in order, one way over
  // the EIB later; the PPE goes on meanwhile.
  void mmio_store(ea_t store_ea, const void* bytes, std::uint32_t count);
  // Mailboxes, over MMIO. A read polls the status until there is something. try_write returns false
  // when no entry is free.
  void write_mailbox(unsigned spe_index, std::uint32_t value);
  bool try_write_mailbox(unsigned spe_index, std::uint32_t value);
  std::uint32_t read_mailbox(unsigned spe_index);
  bool try_read_mailbox(unsigned spe_index, std::uint32_t* value);
  // Sleeps until the SPE interrupts.
  std::uint32_t read_interrupt_mailbox(unsigned spe_index);
  // Sleeps until one of the SPEs has interrupted; returns the first whose letter is not read yet.
  unsigned wait_interrupt();
  void write_signal(unsigned spe_index, unsigned which, std::uint32_t value);

  // Transfers by an SPE's MFC for the PPE: eight entries, five MMIO stores each.
  void proxy_get(unsigned spe_index, ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag);
  void proxy_put(unsigned spe_index, ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag);
  void wait_proxy(unsigned spe_index, std::uint32_t mask);

  // The operating system. yield() runs the next thread of this context, if there is one; yield_to()
  // that one, false when it cannot run here now. sleep() lasts until wake(), which may come before,
  // also while the thread waits for an interrupt.
  bool yield();
  bool yield_to(ppe_thread to);
  void sleep(const char* why);
  void wake(ppe_thread whom);

 private:
  void load_bytes(ea_t ea, void* to, std::size_t bytes);
  void store_bytes(ea_t ea, const void* from, std::size_t bytes);
  ppe_parts& parts_;
};

}  // namespace lev::cell

#endif
