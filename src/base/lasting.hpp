// lasting: the one object of its type, made at its first use and never destroyed: threads and
// handlers of exit() that come after static objects are gone still find it. It takes no memory from
// the heap, so that it can be made when none is left.
#pragma once

#include <new>

namespace lev {

template <class T>
T& lasting() noexcept {
  alignas(T) static unsigned char place[sizeof(T)];
  static T* const it = new (place) T;
  return *it;
}

}  // namespace lev
