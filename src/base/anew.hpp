// anew: the same object, whose members' addresses the compiler computes anew. It is for a member
// that is used on both sides of a call, or in each turn of a loop: GCC 12 keeps the address of an
// atomic in memory meanwhile, and reads it back, where the instruction itself could add the offset.
#pragma once

namespace lev {

template <class T>
[[gnu::always_inline]] inline T& anew(T& object) noexcept {
  T* at = &object;
  __asm__("" : "+r"(at));
  return *at;
}

}  // namespace lev
