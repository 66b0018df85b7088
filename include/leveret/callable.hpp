// The way of a caller's function or function object through a void*, to code that is no template.
// For Leveret's other headers.
#ifndef LEVERET_CALLABLE_HPP
#define LEVERET_CALLABLE_HPP

#include <leveret/version.hpp>

#include <type_traits>

namespace lev::detail {

// address_of_callable() is where it is, and callable_at() takes that back: neither copies it. A
// function's address is no object's, so the language wants another cast for it.
template <class F>
void* address_of_callable(F& f) noexcept {
  if constexpr (std::is_function_v<F>) {
    return reinterpret_cast<void*>(&f);
  } else {
    return const_cast<void*>(static_cast<const void*>(__builtin_addressof(f)));
  }
}
template <class F>
F& callable_at(void* address) noexcept {
  if constexpr (std::is_function_v<F>) {
    return *reinterpret_cast<F*>(address);
  } else {
    return *static_cast<F*>(address);
  }
}

}  // namespace lev::detail

#endif
