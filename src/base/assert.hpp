// LEV_ASSERT: a programmer's error inside Leveret. On in release, so it is for what is done seldom.
// LEV_DCHECK: the same for what every task does, in builds with LEVERET_CHECKS; else it costs
// nothing. LEV_DCHECK_LOOK is one that reads what other threads write: under the model checker
// every such look is a step of the schedule, so it is off there.
//
// A condition has no effects. It never is about what came from outside, from a caller or from
// another process: that gets an answer.
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
#define LEV_DCHECK(condition) void(sizeof(!(condition)))  // not evaluated; its names count as used
#endif

#ifdef LEVERET_MODEL_CHECKER
#define LEV_DCHECK_LOOK(condition) void(sizeof(!(condition)))
#else
#define LEV_DCHECK_LOOK(condition) LEV_DCHECK(condition)
#endif

#endif
