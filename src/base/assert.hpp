// LEV_ASSERT: a programmer's error inside Leveret. On in release, so it is for rare operations.
// LEV_DCHECK: the same for operations of every task, in builds with LEVERET_CHECKS; otherwise it
// costs nothing. LEV_DCHECK_LOOK is a LEV_DCHECK that reads data that other threads write. It is
// off under the model checker, where every such read is a step of the schedule.
//
// A condition has no effects. It is never about input from a caller or from another process, which
// must be checked and answered.
//
// LEV_EXPECTS: a user's error that no status can answer, because a destructor or a deallocator
// meets it. The sentence says what is wrong and what to do, then the program ends.
#pragma once

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
#define LEV_DCHECK(condition) void(sizeof(!(condition)))  // not evaluated; its names count as used
#endif

#ifdef LEVERET_MODEL_CHECKER
#define LEV_DCHECK_LOOK(condition) void(sizeof(!(condition)))
#else
#define LEV_DCHECK_LOOK(condition) LEV_DCHECK(condition)
#endif
