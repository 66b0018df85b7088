// LEV_ASSERT: a programmer's error inside Leveret. On in release, so keep it off innermost loops;
// LEV_DCHECK is for those.
#ifndef LEVERET_BASE_ASSERT_HPP
#define LEVERET_BASE_ASSERT_HPP

#include <cstdio>
#include <cstdlib>

namespace lev {

[[noreturn]] inline void assert_failed(const char* what, const char* file, int line) noexcept {
  std::fprintf(stderr, "leveret: internal error: %s (%s:%d); please report this\n", what, file,
               line);
  std::abort();
}

}  // namespace lev

#define LEV_ASSERT(condition)                   \
  (__builtin_expect(!!(condition), 1) ? void(0) \
                                      : ::lev::assert_failed(#condition, __FILE__, __LINE__))

#ifdef LEVERET_DEBUG_CHECKS
#define LEV_DCHECK(condition) LEV_ASSERT(condition)
#else
#define LEV_DCHECK(condition) void(0)
#endif

#endif
