// See print.hpp.
#include "exercise/print.hpp"

namespace lev::exercise {

const char* place_name(place p) noexcept {
  constexpr const char* names[] = {"threads", "sim", "processes", "pool"};
  return names[static_cast<unsigned>(p)];
}

const char* verb_name(verb v) noexcept {
  constexpr const char* names[] = {"submit", "wait", "wait_any", "wait_all", "poll", "cancel",
      "release", "keep", "then", "await", "loop", "share", "cancel_shown", "poll_shown", "set_flag",
      "await_flag", "spin_flag", "filters", "begin_phase", "end_phase", "complete", "start", "join",
      "yield", "nap", "spawn"};
  static_assert(sizeof names / sizeof *names == static_cast<unsigned>(verb::verb_count));
  return names[static_cast<unsigned>(v)];
}

namespace {
std::string number(std::uint64_t n) { return n == nobody ? "-" : std::to_string(n); }

void print_block(const program& p, std::uint32_t block, int indent, std::string& out) {
  if (block == nobody) return;
  for (const step& s : p.blocks[block]) {
    out.append(static_cast<std::size_t>(indent), ' ');
    out += std::string(verb_name(s.what)) + " " + number(s.a);
    if (!s.list.empty()) {
      out += " [";
      for (auto i : s.list) out += number(i) + " ";
      out += "]";
    }
    for (auto i : s.handed) out += " handed " + number(i);
    if (s.locks) out += " locks " + number(s.locks);
    if (s.repeat > 1) out += " x" + number(s.repeat);
    if (s.after_shown != nobody) out += " after_shown " + number(s.after_shown);
    if (s.timeout_ns >= 0) out += " timeout " + std::to_string(s.timeout_ns);
    if (s.policy != wait_policy::of_runtime) out += " policy " + std::to_string(int(s.policy));
    if (s.is_post) out += " post";
    if (s.in_c) out += " c";
    if (s.what == verb::submit) {
      const task_spec& t = p.tasks[s.a];
      out += " pieces " + number(t.pieces) + " shape " + std::to_string(int(t.what)) + " end " + std::to_string(int(t.end)) + " turns " + number(t.turns);
      if (t.own.what != kind::value) out += " own " + std::to_string(int(t.own.what)) + " " + number(t.own.rows) + "x" + number(t.own.words) + "+" + number(t.own.gap) + (t.own.is_far ? " far" : "") + (t.own.is_left ? " left" : "");
      if (t.has_input) out += " reads " + number(t.reads);
      if (t.has_result) out += t.leaves_result ? " result left" : " result";
      if (t.spins_on != nobody) out += " spins_on " + number(t.spins_on);
      if (t.sets_flag != nobody) out += " sets " + number(t.sets_flag);
    }
    out += "\n";
    if (s.what == verb::submit) print_block(p, p.tasks[s.a].body, indent + 4, out);
    if (s.what == verb::await) for (auto t : s.list) print_block(p, p.tasks[t].body, indent + 4, out);
    if (s.what == verb::then) print_block(p, s.b, indent + 4, out);
    if (s.what == verb::loop || s.what == verb::spawn) for (auto b : s.list) { if (b != nobody) { out.append(static_cast<std::size_t>(indent + 2), ' '); out += "-\n"; } print_block(p, b, indent + 4, out); }
  }
}
}  // namespace

std::string print(const program& p) {
  const settings& c = p.config;
  std::string out = std::string("machine ") + place_name(c.machine) + " workers " + std::to_string(c.workers) +
    " tickets " + number(c.tickets) + " nest_max " + number(c.nest_max) + " contexts " + number(c.contexts) + " depth " + number(c.depth) +
    " dice " + number(c.dice_threshold) + " spin " + number(c.spin_ns) + " store " + number(c.local_store_kib) + " staging " + std::to_string(int(c.staging)) +
    " wait " + std::to_string(int(c.wait)) + " full " + std::to_string(int(c.full)) + (p.close_cancels ? " close_cancels" : "") + (p.drops_runtime ? " drops" : "") + "\n";
  for (auto h : p.hosts) { out += "host\n"; print_block(p, h, 2, out); }
  return out;
}

}  // namespace lev::exercise
