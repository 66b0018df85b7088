// The reader behind toml.hpp: one pass, one character at a time, no look-back.
#include "base/toml.hpp"

#include "base/decimal.hpp"

#include <algorithm>
#include <set>

namespace lev {

namespace {

bool is_bare(char c) {
  return is_letter_or_digit(c) || c == '_' || c == '-';
}

// No file of Leveret's nests nearly as deep. Without a bound a file of some kilobytes would take
// gigabytes, because each name is kept with all those around it, and overflow the stack.
constexpr std::size_t depth_max = 16;

class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  std::vector<toml_entry> all() {
    for (skip_lines(); !at_end(); skip_lines()) {
      if (peek() == '[')
        read_table();
      else
        read_pair(table_);
      end_line();
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw toml_error(line_, what); }
  void check_depth(const std::vector<std::string>& path) const {
    if (path.size() > depth_max) refuse("nested too deeply");
  }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\n' : text_[at_]; }
  char take() {
    const char c = peek();
    if (c == '\n' && !at_end()) ++line_;
    ++at_;
    return c;
  }
  void expect(char c, const char* where) {
    if (peek() != c) refuse(std::string("expected '") + c + "' " + where);
    take();
  }
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t') take();
  }
  void skip_comment() {
    skip_spaces();
    if (peek() == '#')
      while (peek() != '\n') take();
  }
  void skip_lines() {
    for (skip_comment(); !at_end() && (peek() == '\n' || peek() == '\r'); skip_comment()) take();
  }
  void end_line() {
    skip_comment();
    if (peek() == '\r') take();
    if (!at_end() && peek() != '\n') refuse("one value for each line");
  }

  std::string read_key() {
    skip_spaces();
    if (peek() == '"') return read_string();
    std::string key;
    while (is_bare(peek())) key += take();
    if (key.empty()) refuse("expected a name");
    skip_spaces();
    return key;
  }

  void read_table() {
    take();
    if (peek() == '[') refuse("arrays of tables are not read here: give each table a name");
    table_.clear();
    table_.push_back(read_key());
    for (skip_spaces(); peek() == '.'; skip_spaces()) {
      take();
      table_.push_back(read_key());
      check_depth(table_);
    }
    expect(']', "behind the name of a table");
    if (!tables_.insert(table_).second) refuse("this table was there before");
  }

  void read_pair(const std::vector<std::string>& before) {
    std::vector<std::string> path = before;
    path.push_back(read_key());
    skip_spaces();
    expect('=', "behind a name");
    if (!keys_.insert(path).second) refuse("'" + path.back() + "' was given before");
    read_value(path);
  }

  void read_value(const std::vector<std::string>& path) {
    check_depth(path);
    skip_spaces();
    if (peek() == '{') return read_inline_table(path);
    if (peek() == '[') return read_array(path);
    toml_entry e;
    e.path = path;
    e.line = line_;
    if (peek() == '"') {
      e.is = toml_entry::kind::text;
      e.text = read_string();
    } else {
      read_plain(e);
    }
    entries_.push_back(std::move(e));
  }

  void read_inline_table(const std::vector<std::string>& path) {
    take();
    skip_spaces();
    while (peek() != '}') {
      read_pair(path);
      skip_spaces();
      if (peek() == '}') break;
      expect(',', "or '}' behind a value");
      skip_spaces();
    }
    take();
  }

  void read_array(const std::vector<std::string>& path) {
    take();
    std::vector<std::string> inner = path;
    inner.emplace_back();
    for (int i = 0;; ++i) {
      skip_lines();
      if (peek() == ']') break;
      inner.back() = std::to_string(i);
      read_value(inner);
      skip_lines();
      if (peek() == ']') break;
      expect(',', "or ']' behind a value");
    }
    take();
  }

  std::string read_string() {
    take();
    std::string s;
    while (peek() != '"') {
      char c = peek();
      if (c == '\n') refuse("a string ends on its line");
      take();
      if (c == '\\') {
        c = take();
        if (c == 'n')
          c = '\n';
        else if (c != '"' && c != '\\')
          refuse(std::string("\\") + c + " in a string");
      }
      s += c;
    }
    take();
    return s;
  }

  void read_plain(toml_entry& e) {
    std::string word;
    while (is_bare(peek()) || peek() == '.' || peek() == '+') word += take();
    e.text = word;
    if (word == "true" || word == "false") {
      e.is = toml_entry::kind::boolean;
      e.number = word == "true" ? 1 : 0;
      return;
    }
    e.is = toml_entry::kind::number;
    std::erase(word, '_');
    if (!read_decimal(word, &e.number)) refuse("'" + e.text + "' is no value: text needs quotes");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<std::string> table_;
  std::set<std::vector<std::string>> tables_;
  std::set<std::vector<std::string>> keys_;
  std::vector<toml_entry> entries_;
};

// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<toml_entry> read_toml(std::string_view text) {
  return reader(text).all();
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = name.size() / 2 + 1;
  for (const std::string& each : names) {
    const std::size_t d = distance(name, each);
    if (d < least) {
      least = d;
      best = each;
    }
  }
  return best;
}

}  // namespace lev
