// usual_floats: while it exists, the thread computes as programs usually do: it rounds to nearest,
// keeps denormal numbers, and no operation traps. It is for arithmetic of Leveret's own whose
// results a program may not change by its mode, nor whose rounding may end it (feenableexcept()).
#pragma once

#include <cfenv>

namespace lev {

class usual_floats {
 public:
  usual_floats() noexcept {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~usual_floats() { std::fesetenv(&before_); }
  usual_floats(usual_floats&&) = delete;

 private:
  std::fenv_t before_{};
};

}  // namespace lev
