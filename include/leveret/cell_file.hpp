// The numbers of a simulated Cell, by name, each with its unit and its source; and its errors.
#ifndef LEVERET_CELL_FILE_HPP
#define LEVERET_CELL_FILE_HPP

#include <leveret/version.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lev::cell {

enum class error_kind {
  illegal_transfer,
  bad_tag,
  store_overflow,
  memory_full,
  bad_address,
  bad_call,
  bad_machine,
  deadlock,
  no_progress,
  time_over,
  unrepeatable,
};

class error : public std::runtime_error {
 public:
  error(error_kind k, const std::string& text) : std::runtime_error(text), kind(k) {}
  error_kind kind;
};

// One number of a machine file.
struct constant {
  std::string name;  // such as "dma.read_latency"
  double value = 0;
  std::string unit;           // of the schema: "cycles", "bytes/s", "us", "Hz", "KiB", ...
  std::string source;         // published, derived, measured or assumed
  std::string from;           // where it was published, from what it is derived
  std::string calibrated_on;  // the row of a paper's results that it was chosen with, or empty
};

struct machine_file_parts;

// A machine file, checked against the schema: every name in it is known and every known name is in
// it, in its unit, within its bounds, with a source. Cheap to copy. None is without a machine: a
// place for one that comes later is a std::optional.
class machine_file {
 public:
  // One of names(), or the path of a file. Throws error (bad_machine), which names what is wrong.
  static machine_file named(const std::string& name_or_path);
  static machine_file parse(std::string_view text, const std::string& name);
  static std::vector<std::string> names();
  // The text of a file that is built in, to be copied and changed.
  static std::string text_of(const std::string& name);

  const std::string& name() const;
  const std::vector<constant>& constants() const;
  // The number with that name. Throws error (bad_machine) when there is none.
  double value(std::string_view constant_name) const;
  // The same machine with one number replaced, as the schema allows.
  machine_file with(std::string_view constant_name, double value) const;
  // Of all names and values: files with equal hashes are the same machine.
  std::string hash() const;

 private:
  explicit machine_file(std::shared_ptr<const machine_file_parts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const machine_file_parts> parts_;
};

}  // namespace lev::cell

#endif
