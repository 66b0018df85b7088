// What machines share: the data part of a copy engine.
#include "machine/machine.hpp"

#include <cstring>

namespace lev {

void copy_rows(void* local, const argument& remote, bool to_local) noexcept {
  auto* packed = static_cast<char*>(local);
  auto* row = reinterpret_cast<char*>(remote.address);
  for (std::uint32_t r = 0; r < remote.rows; ++r) {
    if (to_local) {
      std::memcpy(packed, row, remote.row_bytes);
    } else {
      std::memcpy(row, packed, remote.row_bytes);
    }
    packed += remote.row_bytes;
    row += remote.stride_bytes;
  }
}

}  // namespace lev
