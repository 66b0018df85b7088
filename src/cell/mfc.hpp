// mfc: a queue of transfer commands of one SPE, for the SPE itself or (proxy) for the PPE.
//
//   1. add() takes a free entry. A command begins as soon as its order allows: a fence waits for
//      those before it in its tag group, a barrier for the same and holds up those behind it.
//   2. When it begins, the target of a get is poisoned and the bus says when it ends.
//   3. When it ends, the bytes move, the entry is free, and waiters for room or tags are woken.
#pragma once

#include <leveret/cell.hpp>

#include <string>
#include <vector>

#include "cell/transfer.hpp"
#include "virtual/loop.hpp"

namespace lev::cell {

class mfc final : public virt::target {
 public:
  mfc(machine_parts& home, unsigned spe_index, unsigned entries)
      : home_(home), spe_index_(spe_index), entries_(entries) {}

  bool is_full() const { return commands_.size() + expected_ >= entries_; }
  // Precondition: the command is legal and there is room.
  void add(command c);
  // expect() keeps an entry for a command on its way; add_expected() adds it when it has come.
  void expect() { ++expected_; }
  void add_expected(command c) {
    --expected_;
    add(std::move(c));
  }
  // The tag groups of the mask that have nothing in the queue.
  std::uint32_t done(std::uint32_t mask) const;
  // The calling actor waits until the queue changes: for room, or for tags. False when the run is
  // over.
  [[nodiscard]] bool wait_change(const char* why);
  std::string under_way() const;

 private:
  void on_event(std::uint64_t number) override;
  bool may_begin(std::size_t index) const;
  void begin_what_may();
  void begin(command& c);
  void hide_target(const command& c, ls_t ls, ea_t ea, std::uint32_t bytes);
  void move(const command& c);
  void move_one(const command& c, ls_t ls, ea_t ea, std::uint32_t bytes);

  machine_parts& home_;
  const unsigned spe_index_;
  const std::size_t entries_;
  std::vector<command> commands_;
  std::size_t expected_ = 0;  // commands on their way over the EIB
  std::uint64_t numbers_ = 0;
  unsigned running_ = 0;
  virt::actor* waiter_ = nullptr;
};

}  // namespace lev::cell
