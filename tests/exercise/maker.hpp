// maker: makes one program at random. generate.cpp has its blocks and steps, generate_tasks.cpp its
// tasks and what runs tasks, generate_hosts.cpp what hosts do that are many.
#pragma once

#include "base/random.hpp"
#include "exercise/generate.hpp"

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace lev::exercise {

enum class block_kind { host, body, callback, piece, thread };

class maker {
 public:
  maker(std::uint64_t seed, place machine, const ingredients& of);
  program make();

 private:
  bool chance(std::uint32_t one_in) { return random_.below(one_in) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + random_.below(static_cast<std::uint32_t>(all.size())));
  }
  std::uint32_t add_block() {
    p_.blocks.emplace_back();
    return static_cast<std::uint32_t>(p_.blocks.size() - 1);
  }
  bool is_local_machine() const { return is_local(machine_); }
  unsigned rate(verb v) const { return rates_[static_cast<unsigned>(v)]; }

  void configure();
  void configure_crowd();
  void confine();
  void fill_main(std::uint32_t others);
  void fill(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks);
  void add_step(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
                std::vector<std::uint32_t>& owned);
  bool add_of_ticket(std::uint32_t to, block_kind k, step s,
                     const std::vector<std::uint32_t>& owned);
  bool add_of_block(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
                    step s, std::vector<std::uint32_t>& owned);
  void add_plain(std::uint32_t to, block_kind k, step s);
  void finish(std::uint32_t to, block_kind k, std::vector<std::uint32_t>& owned);
  void finish_host(std::uint32_t to, std::vector<std::uint32_t>& owned);
  void add_rush(std::uint32_t to);
  void add_to_rush(std::uint32_t to);
  std::uint32_t add_brief_task(std::uint32_t pieces, std::uint32_t nap_most);
  bool may_complete(std::uint32_t of) const {
    if (is_crowded_) return true;
    return of == p_.hosts[0] && p_.blocks[of][0].what != verb::begin_phase;
  }
  bool may_keep_aside() const {
    return is_crowded_ && of_.has_verb[static_cast<unsigned>(verb::aside)];
  }
  bool may_shut(std::uint32_t of) const {
    return closer_ < p_.hosts.size() && of == p_.hosts[closer_];
  }
  void submit(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
              std::vector<std::uint32_t>& owned);
  void hand_to_callback(step& s, std::vector<std::uint32_t>& owned);
  void add_await(std::uint32_t to, std::uint32_t depth, std::uint32_t locks);
  void add_inner(std::uint32_t to, verb v, std::uint32_t depth, std::uint32_t locks);
  void add_meeting(std::uint32_t to, block_kind k, std::vector<std::uint32_t>& owned);
  void add_scope(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
                 std::vector<std::uint32_t>& owned);
  step ordered_step(std::uint32_t scope, block_kind k, std::uint32_t locks,
                    const std::vector<std::uint32_t>& owned);
  std::uint32_t add_field_task(std::uint32_t field, bool only_reads);
  std::uint32_t add_slow_task(std::uint32_t field);
  std::uint32_t add_naps(std::uint32_t count);
  field_block some_block();
  void add_spinner(std::uint32_t to, std::vector<std::uint32_t>& owned);
  std::uint32_t add_task(std::uint32_t depth, std::uint32_t locks, bool is_leaf);
  void give_memory(task_spec& t);
  void give_rows(task_spec& t);
  void choose_entrance(step& s);
  std::uint32_t some_locks(std::uint32_t above);
  void order(step& s, const std::vector<std::uint32_t>& owned, block_kind k);
  void add(std::uint32_t to, step s) { p_.blocks[to].push_back(std::move(s)); }
  std::int64_t timeout() {
    return chance(2) ? no_timeout : one_of<std::int64_t>({no_timeout, 0, 1'000, 50'000, 500'000});
  }
  wait_policy policy() {
    return chance(2) ? wait_policy::of_runtime
                     : one_of({wait_policy::help, wait_policy::park, wait_policy::spin,
                               wait_policy::yield, wait_policy::directed});
  }

  wait_policy idle_policy() {  // one by which a host runs no tasks
    return one_of(
        {wait_policy::park, wait_policy::spin, wait_policy::yield, wait_policy::directed});
  }

  random_source random_;
  place machine_;
  const ingredients& of_;
  program p_;
  unsigned rates_[static_cast<unsigned>(verb::verb_count)]{};
  std::uint32_t budget_;
  std::uint32_t depth_max_;
  std::uint32_t host_count_ = 1;
  std::uint32_t closer_ = 0;  // the one host that may close the runtime
  bool is_crowded_ = false;   // several hosts have few tickets, see generate_hosts.cpp
  std::uint32_t flags_used_ = 0;
  std::uint32_t scopes_used_ = 0;
  bool may_fail_;
  bool may_cancel_;
};

}  // namespace lev::exercise
