// LEV_ASSERT: a programmer's error inside Leveret. On in release, so keep it off innermost loops;
// LEV_DCHECK is for those.
//
// LEV_EXPECTS: a user's error that no status can answer, as what is wrong is a destructor's or a
// deallocator's call. The sentence says what is wrong and what to do, then the program ends.
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

[[noreturn]] inline void expectation_failed(const char* sentence) noexcept {
  std::fprintf(stderr, "leveret: %s\n", sentence);
  std::abort();
}

}  // namespace lev

#define LEV_ASSERT(condition)                   \
  (__builtin_expect(!!(condition), 1) ? void(0) \
                                      : ::lev::assert_failed(#condition, __FILE__, __LINE__))

#define LEV_EXPECTS(condition, sentence) \
  (__builtin_expect(!!(condition), 1) ? void(0) : ::lev::expectation_failed(sentence))

#ifdef LEVERET_DEBUG_CHECKS
#define LEV_DCHECK(condition) LEV_ASSERT(condition)
#else
#define LEV_DCHECK(condition) void(0)
#endif

#endif
