// The changed copies of the library's sources ask here whether a fault is the planted one. The
// compiler's command line puts this file before each of them.
#pragma once

#ifdef __cplusplus
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace lev::plant {

inline bool fault(const char* name) noexcept {
  static const char* const planted = std::getenv("LEVERET_FAULT");
  return planted != nullptr && std::strcmp(planted, name) == 0;
}

}  // namespace lev::plant
#endif
