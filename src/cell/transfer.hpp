// transfer: an MFC command, and whether it is legal.
#pragma once

#include <leveret/cell.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace lev::cell {

struct command {
  enum class kind { get, put, get_list, put_list };
  kind is = kind::get;
  order ordered = order::none;
  unsigned tag = 0;
  ls_t ls = 0;
  ea_t ea = 0;
  std::uint32_t bytes = 0;  // of the transfer, or of the list
  ls_t list = 0;
  std::uint64_t number = 0;
  bool has_started = false;
  bool is_atomic = false;                // putqlluc: the line is written through the caches
  std::vector<list_element> elements{};  // of a list that has started

  bool is_list() const { return is == kind::get_list || is == kind::put_list; }
  bool is_get() const { return is == kind::get || is == kind::get_list; }
};

// In words, for errors.
constexpr const char* name_of(command::kind k) {
  constexpr const char* names[] = {"get", "put", "list of gets", "list of puts"};
  return names[static_cast<int>(k)];
}

// What is wrong with a transfer, and what would be right; empty when it is legal. Looks at the size
// and the alignment of both addresses.
std::string why_illegal(ls_t ls, ea_t ea, std::uint32_t bytes);
// The same of a tag and of a list.
std::string why_bad_tag(unsigned tag);
std::string why_illegal_list(ls_t list, std::size_t elements);

std::string hex(std::uint64_t value);

}  // namespace lev::cell
