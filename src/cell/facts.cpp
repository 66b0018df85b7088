// The schema of machine files, their reader, and the files that are built in; see cell_file.hpp.
#include "cell/facts.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "base/assert.hpp"
#include "base/decimal.hpp"
#include "base/random.hpp"
#include "base/toml.hpp"

namespace lev::cell {

namespace {

// Of bytes in a second, and of cycles: with this bound no time of a part comes near the two minutes
// that are kept free behind the end of the clock. What waits in line for a link is cut there.
constexpr double most = 1e18;
constexpr double cycles_most = 1e6;
constexpr std::size_t file_bytes_max = 1 << 20;

struct fact_rule {
  const char* name;
  const char* unit;
  double min;
  double max;
  bool is_whole;
};

// In the order of enum fact.
constexpr std::array<fact_rule, fact_count> schema{{
    {"clock.rate", "Hz", 1e8, 1e12, true},
    {"machine.chips", "chips", 1, 16, true},
    {"machine.spes", "SPEs", 1, 1024, true},
    {"machine.memory", "MiB", 1, 65536, true},
    {"ppe.contexts", "contexts", 1, 64, true},
    {"ppe.runs_tasks", "1: yes, 0: no", 0, 1, true},
    {"ppe.quantum", "us", 1, 1e7, false},
    {"ppe.switch", "us", 0.001, 1e6, false},
    {"ppe.yield_to", "of a switch", 0.01, 100, false},
    {"ppe.empty_yield", "us", 0.001, 1e6, false},
    {"ppe.interrupt", "us", 0.001, 1e6, false},
    {"ppe.near_cache", "KiB", 1, 1 << 20, true},
    {"ppe.near_load", "cycles", 1, cycles_most, true},
    {"ppe.cached_load", "cycles", 1, cycles_most, true},
    {"ppe.missed_load", "cycles", 1, cycles_most, true},
    {"ppe.store", "cycles", 1, cycles_most, true},
    {"ppe.mmio_store", "cycles", 1, cycles_most, true},
    {"spe.store", "KiB", 1, 1 << 20, true},
    {"spe.kernel", "KiB", 1, 1 << 20, true},
    {"spe.stack", "KiB", 1, 1 << 20, true},
    {"spe.stream", "bytes/s", 1e6, most, false},
    {"spe.thread_switch", "cycles", 1, cycles_most, true},
    {"spe.poll", "cycles", 1, cycles_most, true},
    {"spe.channel", "cycles", 1, cycles_most, true},
    {"mfc.queue", "entries", 1, 1024, true},
    {"mfc.proxy_queue", "entries", 1, 1024, true},
    {"mfc.issue", "cycles", 1, cycles_most, true},
    {"mfc.list_element", "cycles", 1, cycles_most, true},
    {"dma.read_latency", "cycles", 1, cycles_most, true},
    {"dma.read_latency_loaded", "cycles", 1, cycles_most, true},
    {"dma.write_latency", "cycles", 1, cycles_most, true},
    {"dma.write_latency_loaded", "cycles", 1, cycles_most, true},
    {"dma.store_latency", "cycles", 1, cycles_most, true},
    {"dma.loaded_spes", "SPEs", 2, 1024, true},
    {"memory.rate", "bytes/s", 1e6, most, false},
    {"memory.efficiency", "of the rate", 0.01, 1, false},
    {"eib.port", "bytes/s", 1e6, most, false},
    {"eib.command", "cycles", 1, 1e4, true},
    {"eib.way", "cycles", 1, cycles_most, true},
    {"atomic.remote", "cycles", 1, cycles_most, true},
    {"atomic.own", "cycles", 1, cycles_most, true},
    {"atomic.lines", "lines", 1, 1024, true},
}};

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw error(error_kind::bad_machine, file + ": " + what);
}

std::string told(double value) {
  return decimal_text(value, 12).c_str();
}

// `name`: the rule's, and before it the line, if there is one.
void check_value(const std::string& file, const std::string& name, const fact_rule& rule,
                 double value) {
  if (std::isnan(value)) refuse(file, name + " is not a number");
  if (value <= 0 && rule.min > 0)
    refuse(file, name + " is " + told(value) + ": it must be above 0");
  if (value < rule.min || value > rule.max)
    refuse(file, name + " is " + told(value) + ": it must be from " + told(rule.min) + " to " +
                     told(rule.max) + " " + rule.unit);
  if (rule.is_whole && value != std::floor(value))
    refuse(file, name + " is " + told(value) + ": it must be a whole number");
}

// The values of one line of a file, by the keys of its inline table.
struct line_parts {
  std::map<std::string, toml_entry> keys;
  int line = 0;
};

// No static objects: the constructors and destructors of a program's own may read a file.
std::vector<std::string> line_keys() {
  return {"value", "unit", "source", "from", "calibrated_on"};
}
bool is_source(std::string_view word) {
  return word == "published" || word == "derived" || word == "measured" || word == "assumed";
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  for (const std::string& each : names)
    if (each == name) return true;
  return false;
}

std::string near(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(name, names);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

std::map<std::string, line_parts> lines_of(const std::vector<toml_entry>& entries,
                                           const std::string& file) {
  std::vector<std::string> names;
  for (const fact_rule& rule : schema) names.emplace_back(rule.name);
  const std::vector<std::string> keys = line_keys();
  std::map<std::string, line_parts> found;
  for (const toml_entry& e : entries) {
    const std::string place = "line " + std::to_string(e.line) + ": ";
    const std::string name = e.path.size() > 1 ? e.path[0] + "." + e.path[1] : e.path[0];
    if (!has(names, name)) refuse(file, place + "unknown name '" + name + "'" + near(name, names));
    if (e.path.size() != 3)
      refuse(file, place + name + " must be { value = ..., unit = ..., source = ... }");
    if (!has(keys, e.path[2]))
      refuse(file, place + name + " has no '" + e.path[2] + "'" + near(e.path[2], keys));
    found[name].keys[e.path[2]] = e;
    found[name].line = e.line;
  }
  return found;
}

std::string text_in(const line_parts& parts, const char* key) {
  const auto found = parts.keys.find(key);
  return found == parts.keys.end() ? std::string() : found->second.text;
}

constant constant_of(const fact_rule& rule, const line_parts& parts, const std::string& file) {
  const std::string place = "line " + std::to_string(parts.line) + ": " + rule.name;
  for (const char* key : {"value", "unit", "source"})
    if (!parts.keys.contains(key)) refuse(file, place + " has no " + key);
  const toml_entry& value = parts.keys.at("value");
  if (value.is != toml_entry::kind::number) refuse(file, place + ": its value must be a number");
  check_value(file, place, rule, value.number);
  constant c{rule.name,
             value.number,
             text_in(parts, "unit"),
             text_in(parts, "source"),
             text_in(parts, "from"),
             text_in(parts, "calibrated_on")};
  if (c.unit != rule.unit)
    refuse(file, place + " is in '" + c.unit + "': it must be in '" + rule.unit + "'");
  if (!is_source(c.source))
    refuse(file, place + " has the source '" + c.source +
                     "': it must be published, derived, measured or assumed");
  if (c.from.empty() && c.source != "assumed")
    refuse(file, place + " is " + c.source + ": say from where (from = \"...\")");
  return c;
}

double value_of(const machine_file_parts& parts, fact f) {
  return parts.constants[static_cast<std::size_t>(f)].value;
}

// Checks that concern several numbers.
void check_together(const machine_file_parts& p) {
  const double reserved = value_of(p, fact::kernel_kib) + value_of(p, fact::stack_kib);
  if (value_of(p, fact::store_kib) <= reserved)
    refuse(p.name, "spe.store is " + told(value_of(p, fact::store_kib)) +
                       " KiB, which spe.kernel and spe.stack need (" + told(reserved) + " KiB)");
  const auto spes = static_cast<unsigned>(value_of(p, fact::spes));
  if (spes % static_cast<unsigned>(value_of(p, fact::chips)) != 0)
    refuse(p.name, "machine.spes must be a multiple of machine.chips");
}

}  // namespace

std::vector<std::string> facts::names_read() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fact_count; ++i)
    if (was_read_[i] != 0) names.emplace_back(schema[i].name);
  return names;
}

machine_file machine_file::parse(std::string_view text, const std::string& name) {
  std::vector<toml_entry> entries;
  try {
    entries = read_toml(text);
  } catch (const toml_error& e) {
    refuse(name, e.what());
  }
  const auto lines = lines_of(entries, name);
  auto parts = std::make_shared<machine_file_parts>();
  parts->name = name;
  for (const fact_rule& rule : schema) {
    const auto found = lines.find(rule.name);
    if (found == lines.end()) refuse(name, std::string(rule.name) + " is missing");
    parts->constants.push_back(constant_of(rule, found->second, name));
  }
  check_together(*parts);
  return machine_file(std::move(parts));
}

std::vector<std::string> machine_file::names() {
  std::vector<std::string> names;
  for (const built_in_file& file : built_in_files()) names.emplace_back(file.name);
  return names;
}

std::string machine_file::text_of(const std::string& name) {
  for (const built_in_file& file : built_in_files())
    if (name == file.name) return file.text;
  std::string all;
  for (const std::string& each : names()) all += " " + each;
  throw error(error_kind::bad_machine, "there is no machine '" + name + "' built in; there are:" +
                                           all + "; a file is named by its path");
}

machine_file machine_file::named(const std::string& name_or_path) {
  if (has(names(), name_or_path)) return parse(text_of(name_or_path), name_or_path);
  std::error_code unknown;
  if (std::filesystem::is_directory(name_or_path, unknown))
    refuse(name_or_path, "it is a folder; name a file in it");
  std::ifstream in(name_or_path);
  if (!in && name_or_path.find('/') != std::string::npos)
    refuse(name_or_path, "it cannot be read: " + std::generic_category().message(errno));
  if (!in) return parse(text_of(name_or_path), name_or_path);  // says what there is
  std::string text(file_bytes_max + 1, ' ');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > file_bytes_max)
    refuse(name_or_path, "over a MiB long: this is no machine file");
  return parse(text, name_or_path);
}

const std::string& machine_file::name() const {
  return parts_->name;
}

const std::vector<constant>& machine_file::constants() const {
  return parts_->constants;
}

double machine_file::value(std::string_view constant_name) const {
  for (const constant& c : parts_->constants)
    if (c.name == constant_name) return c.value;
  std::vector<std::string> names;
  for (const constant& c : parts_->constants) names.push_back(c.name);
  const std::string name(constant_name);
  refuse(parts_->name, "unknown name '" + name + "'" + near(name, names));
}

machine_file machine_file::with(std::string_view constant_name, double value) const {
  (void)this->value(constant_name);
  auto changed = std::make_shared<machine_file_parts>(*parts_);
  for (std::size_t i = 0; i < fact_count; ++i) {
    if (changed->constants[i].name != constant_name) continue;
    check_value(changed->name, schema[i].name, schema[i], value);
    changed->constants[i].value = value;
  }
  check_together(*changed);
  return machine_file(std::move(changed));
}

std::string machine_file::hash() const {
  std::uint64_t h = 0;
  for (const constant& c : parts_->constants) {
    const std::string text = c.name + "=" + told(c.value) + ";";
    for (const char each : text) h = mix64(h + static_cast<unsigned char>(each) + 1);
  }
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(h));
  return text;
}

}  // namespace lev::cell
