// The settings of a printed program. See print.hpp.
#include "exercise/print.hpp"

#include <string>

namespace lev::exercise {

const char* policy_text(wait_policy p) noexcept {
  constexpr const char* names[] = {"help", "park", "spin", "yield", "directed", "of_runtime"};
  return names[static_cast<unsigned>(p)];
}

namespace {

class settings_printer {
 public:
  std::string all(const settings& c) {
    set_machine(c);
    set_numbers(c);
    set_words(c);
    return out_;
  }

 private:
  void line(const std::string& text) { out_ += "  " + text + "\n"; }
  template <class T>
  void set(const char* field, T value, T standard) {
    if (value != standard) line(std::string("c.") + field + " = " + std::to_string(value) + ";");
  }
  void set_machine(const settings& c) {
    if (c.machine != place::threads)
      line(std::string("c.machine = \"") +
           (is_local(c.machine) ? place_name(c.machine) : "processes") + "\";");
    if (c.machine == place::pool) line("c.processes.pool = \"exercise\";");
    line("c.workers = " + std::to_string(c.workers) + ";");
  }
  void set_numbers(const settings& c) {
    const config d;
    set("tickets", c.tickets, d.tickets);
    set("nest_max", c.nest_max, d.nest_max);
    set("contexts", c.contexts, d.contexts);
    set("depth", c.depth, d.depth);
    set("dice_threshold", c.dice_threshold, d.dice_threshold);
    set("spin_ns", c.spin_ns, d.spin_ns);
    set("local_store_bytes", std::size_t{c.local_store_kib} << 10, d.local_store_bytes);
    set("seed", c.seed, d.seed);
    set("trace_events", c.trace_events, d.trace_events);
    if (!is_local(c.machine))
      set("processes.max_attempts", c.max_attempts, d.processes.max_attempts);
    set("processes.chaos", c.chaos, d.processes.chaos);
  }
  void set_words(const settings& c) {
    const config d;
    constexpr const char* stagings[] = {"automatic", "in_place", "copy"};
    constexpr const char* fulls[] = {"help", "wait", "fail"};
    if (c.is_pinned) line("c.pin = true;");
    if (c.sim_machine != nullptr) line(std::string("c.sim_machine = \"") + c.sim_machine + "\";");
    if (c.staging != d.staging)
      line(std::string("c.staging = lev::staging::") + stagings[static_cast<unsigned>(c.staging)] +
           ";");
    if (c.wait != d.wait)
      line(std::string("c.wait = lev::wait_policy::") + policy_text(c.wait) + ";");
    if (c.full != d.full)
      line(std::string("c.full = lev::when_full::") + fulls[static_cast<unsigned>(c.full)] + ";");
    if (c.is_confined) line("c.processes.isolation = lev::isolation::confined;");
  }

  std::string out_;
};

}  // namespace

std::string print_settings(const settings& c) {
  return settings_printer().all(c);
}

}  // namespace lev::exercise
