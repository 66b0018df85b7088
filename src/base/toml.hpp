// A strict reader of the part of TOML that Leveret's own files use: tables, strings, numbers,
// booleans, inline tables and arrays of them; no dates, no arrays of tables, no strings of several
// lines. Anything else is refused with its line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lev {

class toml_error : public std::runtime_error {
 public:
  toml_error(int at, const std::string& what)
      : std::runtime_error("line " + std::to_string(at) + ": " + what), line(at) {}
  int line;
};

// One value; inline tables and arrays are flattened: `[a] b = { c = 1 }` is path {"a", "b", "c"}.
struct toml_entry {
  enum class kind { text, number, boolean };
  std::vector<std::string> path;
  kind is;
  std::string text;   // as it was written, without the quotes
  double number = 0;  // of a boolean: 0 or 1
  int line = 0;
};

// The entries in the order of the file. Throws toml_error.
std::vector<toml_entry> read_toml(std::string_view text);

// The one of `names` with the fewest changes to `name`; empty when none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace lev
