// The rules of MFC transfers (Cell Broadband Engine Architecture): sizes, alignment, tags, lists.
#include "cell/transfer.hpp"

#include <cstdio>

namespace lev::cell {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

namespace {

bool is_small(std::uint32_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

}  // namespace

std::string why_illegal(ls_t ls, ea_t ea, std::uint32_t bytes) {
  const std::uint64_t unit = bytes < 16 ? bytes : 16;
  const bool is_size = is_small(bytes) || (bytes > 0 && bytes % 16 == 0);
  if (is_size && bytes <= largest_transfer && (ls & 15) == (ea & 15) && ls % unit == 0) return {};
  const std::string what = std::to_string(bytes) + " bytes";
  if (bytes == 0 || (!is_small(bytes) && bytes % 16 != 0))
    return what + ": a size must be 1, 2, 4, 8 or a multiple of 16; round up to " +
           std::to_string((bytes / 16 + 1) * 16);
  if (bytes > largest_transfer)
    return what + ": one transfer is 16384 bytes at most; use several, or a list";
  if ((ls & 15) != (ea & 15))
    return what + " between local store " + hex(ls) + " and address " + hex(ea) +
           ": both must have the same last four bits";
  return what + " at local store " + hex(ls) + ": the address must be a multiple of " +
         std::to_string(unit);
}

std::string why_bad_tag(unsigned tag) {
  if (tag < tag_count) return {};
  return "tag " + std::to_string(tag) + ": tags are 0 to 31";
}

std::string why_illegal_list(ls_t list, std::size_t elements) {
  if (list % 8 != 0)
    return "list at local store " + hex(list) + ": a list begins at a multiple of 8";
  if (elements == 0 || elements > largest_transfer / sizeof(list_element))
    return "list of " + std::to_string(elements) + " elements: a list has 1 to 2048";
  return {};
}

}  // namespace lev::cell
