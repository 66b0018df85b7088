// What the changed copies of the library's sources ask: is this fault the one that is planted? It
// is put before each of them by the compiler's command line.
#ifndef LEVERET_TESTS_EXERCISE_PLANT_HPP
#define LEVERET_TESTS_EXERCISE_PLANT_HPP

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

#endif
