// facts: the constants of a Cell that its parts read, and the record of which were read.
//
// Each is one line of the schema in facts.cpp: name, unit, bounds. A part reads through facts,
// never from the file, so that the constants behind a result are known.
#pragma once

#include <leveret/cell_file.hpp>
#include <leveret/virtual_time.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lev::cell {

enum class fact : unsigned {
  clock_rate,
  chips,
  spes,
  memory_mib,
  ppe_contexts,
  ppe_runs_tasks,
  ppe_quantum,
  ppe_switch,
  ppe_yield_to,
  ppe_empty_yield,
  ppe_interrupt,
  ppe_near_cache,
  ppe_near_load,
  ppe_cached_load,
  ppe_missed_load,
  ppe_store,
  ppe_mmio_store,
  store_kib,
  kernel_kib,
  stack_kib,
  stream_rate,
  thread_switch,
  poll,
  channel,
  queue_entries,
  proxy_entries,
  issue,
  list_element,
  read_latency,
  read_latency_loaded,
  write_latency,
  write_latency_loaded,
  store_latency,
  loaded_spes,
  memory_rate,
  memory_efficiency,
  port_rate,
  command,
  way,
  atomic_remote,
  atomic_own,
  atomic_lines,
  count,
};

constexpr std::size_t fact_count = static_cast<std::size_t>(fact::count);

// The machine files that are part of the library; CMake writes their texts into a source file.
struct built_in_file {
  const char* name;
  const char* text;
};
std::span<const built_in_file> built_in_files();

struct machine_file_parts {
  std::string name;
  std::vector<constant> constants;  // in the order of the enumeration
};

class facts {
 public:
  explicit facts(const machine_file& file) : file_(file) {
    for (std::size_t i = 0; i < fact_count; ++i) values_[i] = file.constants()[i].value;
  }

  double get(fact f) const {
    const auto i = static_cast<std::size_t>(f);
    was_read_[i] = 1;
    return values_[i];
  }
  std::int64_t whole(fact f) const { return static_cast<std::int64_t>(get(f)); }
  unsigned number(fact f) const { return static_cast<unsigned>(get(f)); }
  lev::cycles cycles(fact f) const { return lev::cycles(whole(f)); }
  virtual_time micros(fact f) const {
    return virtual_time(static_cast<std::int64_t>(get(f) * 1e9 + 0.5));
  }

  const machine_file& file() const { return file_; }
  std::vector<std::string> names_read() const;

 private:
  machine_file file_;
  std::array<double, fact_count> values_{};
  mutable std::array<std::uint8_t, fact_count> was_read_{};
};

}  // namespace lev::cell
