// The steps of an exploration, see explore.hpp.
#include "explore.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace model {
namespace {

const char* order_name(std::memory_order o) {
  return rl::format(relacy_order(o));
}

std::string function_name(const where& w) {
  std::string name = w.function_name();
  name.resize(name.find('('));
  const std::size_t start = name.rfind(':');
  return start == std::string::npos ? name : name.substr(start + 1);
}

// The last steps of a schedule, without what precedes the threads and without template arguments.
void print_end_of(const std::string& history) {
  constexpr std::size_t lines_max = 250;
  std::vector<std::string> lines;
  std::istringstream in(history.substr(0, history.find("\nthread 0:")));
  for (std::string line; std::getline(in, line);) {
    const std::size_t from = line.find(" [with ");
    if (from != std::string::npos) line.erase(from, line.rfind(']') + 1 - from);
    lines.push_back(line);
    if (line.find("[BEFORE END]") != std::string::npos) lines.clear();
  }
  for (std::size_t i = lines.size() > lines_max ? lines.size() - lines_max : 0; i < lines.size();
       ++i) {
    std::printf("    %s\n", lines[i].c_str());
  }
}

verdict look_for_fault(const scenario_type& type, const budget& b) {
  verdict v = run(type, search::random, b, b.random_planted, false);
  if (type.is_bounded && !v.failed()) {
    v = run(type, search::bounded, b, b.bounded_planted, false);
  }
  return v;
}

}  // namespace

explorer::explorer(const char* protocol, const budget& b,
                   std::initializer_list<const char*> headers)
    : protocol_(protocol), budget_(b), headers_(headers.begin(), headers.end()) {
  if (const char* factor = std::getenv("LEVERET_MODEL_FACTOR")) {
    budget_.random *= static_cast<unsigned>(std::atoi(factor));
    budget_.spare_share = 1;
  }
}

explorer& explorer::check(const scenario_type& type) {
  scenarios_.push_back(type);
  tell_of(type, search::random, run(type, search::random, budget_, budget_.random, true));
  if (type.is_bounded && failures_ == 0) {
    tell_of(type, search::bounded, run(type, search::bounded, budget_, budget_.bounded, true));
  }
  return *this;
}

explorer& explorer::spare(const char* what, const char* why) {
  spares_.push_back({what, why, false});
  return *this;
}

explorer& explorer::elsewhere(const char* what) {
  elsewhere_.push_back({what, nullptr, false});
  return *this;
}

explorer& explorer::plant(fault_name f, const char* name) {
  budget b = budget_;
  if (name != nullptr) b.random_planted = b.random_directed;
  planted_id = f.id;
  const std::string found = failures_ == 0 ? find(b, name) : std::string();
  planted_id = 0;
  ++steps_planted_;
  if (failures_ != 0) return *this;  // where the code itself fails, faults say nothing
  if (found.empty()) return fail(std::string("not found: ") + f.name);
  std::printf("  found   %-75s %s\n", f.name, found.c_str());
  std::fflush(stdout);
  return *this;
}

int explorer::end() {
  if (failures_ == 0) weaken_all();
  for (const spare_order& s : spares_) {
    if (!s.is_used && failures_ == 0) fail(std::string("spare, but found or not met: ") + s.what);
  }
  for (const spare_order& s : elsewhere_) {
    if (!s.is_used && failures_ == 0) fail(std::string("elsewhere, but not met: ") + s.what);
  }
  std::printf("%s: %llu schedules; %u orders weakened, %u found, %u spare; %u wrong steps; %s\n",
              protocol_, static_cast<unsigned long long>(schedules_), weakenings_, found_,
              weakenings_ - found_, steps_planted_, failures_ == 0 ? "ok" : "FAILED");
  return failures_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

explorer& explorer::fail(const std::string& what) {
  ++failures_;
  std::printf("  FAILED  %s\n", what.c_str());
  return *this;
}

void explorer::tell_of(const scenario_type& type, search how, const verdict& v) {
  schedules_ += v.schedules;
  const bool is_bounded = how == search::bounded;
  std::printf("  %-8s %-24s %9llu schedules%s: %s\n", is_bounded ? "bounded" : "random", type.name,
              static_cast<unsigned long long>(v.schedules),
              v.is_complete && is_bounded ? " (all)" : "",
              v.failed() ? rl::test_result_str(v.result) : "ok");
  std::fflush(stdout);
  if (!v.failed()) return;
  fail(type.name);
  print_end_of(v.history);
}

// Looks for a schedule that fails; where and how, or nothing.
std::string explorer::find(const budget& b, const char* name) {
  for (const scenario_type& type : scenarios_) {
    if (name != nullptr && std::strcmp(name, type.name) != 0) continue;
    const verdict v = look_for_fault(type, b);
    schedules_ += v.schedules;
    if (!v.failed()) continue;
    return std::string(rl::test_result_str(v.result)) + " (" + type.name + ", schedule " +
           std::to_string(v.schedules) + ")";
  }
  return {};
}

bool explorer::concerns(unsigned i) const {
  if (!has_site[i] || !sites[i].is_genuine) return false;
  const std::string file = sites[i].at.file_name();
  for (const std::string& header : headers_) {
    if (file.ends_with(header)) return true;
  }
  return false;
}

// The deed of a site, as spare() names it; "#n" where the function has several alike.
std::string explorer::text_of(const site& s) const {
  static constexpr const char* kinds[] = {"load", "store", "change"};
  const std::string name = function_name(s.at);
  unsigned before = 0;
  unsigned alike = 0;
  for (unsigned i = 0; i < sites_max; ++i) {
    const site& other = sites[i];
    if (!concerns(i) || other.kind != s.kind || other.order != s.order ||
        function_name(other.at) != name) {
      continue;
    }
    ++alike;
    before += other.at.line() < s.at.line() ||
              (other.at.line() == s.at.line() && other.at.column() < s.at.column());
  }
  return name + (alike > 1 ? "#" + std::to_string(before + 1) : "") + " " +
         kinds[static_cast<int>(s.kind)] + " " + order_name(s.order);
}

void explorer::weaken_all() {
  using enum std::memory_order;
  for (unsigned i = 0; i < sites_max; ++i) {
    if (!concerns(i)) continue;
    const site& s = sites[i];
    if (s.order == seq_cst) {
      const std::memory_order next[] = {acquire, release, acq_rel};
      weaken(s, next[static_cast<int>(s.kind)]);
    }
    if (s.order == acq_rel) {
      weaken(s, acquire);
      weaken(s, release);
    } else {
      weaken(s, relaxed);
    }
  }
}

void explorer::weaken(const site& s, std::memory_order to) {
  const std::string file = s.at.file_name();
  const std::string text = text_of(s) + " -> " + order_name(to);
  const std::string place = file.substr(file.rfind('/') + 1) + ":" + std::to_string(s.at.line());
  for (spare_order& o : elsewhere_) {
    if (text == o.what) return void(o.is_used = true);
  }
  spare_order* spare = nullptr;
  for (spare_order& o : spares_) {
    if (text == o.what) spare = &o;
  }
  budget b = budget_;
  if (spare != nullptr) {  // nothing ends these searches early
    b.random_planted /= b.spare_share;
    b.bounded_planted /= b.spare_share;
  }
  weakened = {&s, to};
  const std::string found = find(b);
  weakened = {};
  ++weakenings_;
  if (!found.empty()) {
    ++found_;
    std::printf("  found   %-24s %-50s %s\n", place.c_str(), text.c_str(), found.c_str());
  } else if (spare != nullptr) {
    spare->is_used = true;
    std::printf("  spare   %-24s %-50s %s\n", place.c_str(), text.c_str(), spare->why);
  } else {
    fail(place + " " + text + ": not found");
  }
  std::fflush(stdout);
}

}  // namespace model
