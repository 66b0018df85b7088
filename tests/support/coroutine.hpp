// A context that runs a function and can be resumed until it is done: what the tests of contexts
// share.
#pragma once

#include <cstddef>

#include "context/context.hpp"

namespace lev::test {

constexpr std::size_t coroutine_stack_bytes = 64 * 1024;

// A context that runs `body(*this)` and then finishes to whoever resumed it last.
struct coroutine {
  context self;
  context* resumer = nullptr;
  void (*body)(coroutine&) = nullptr;
  void* data = nullptr;
  bool is_done = false;

  bool start(void (*function)(coroutine&), void* datum = nullptr,
             std::size_t bytes = coroutine_stack_bytes) {
    body = function;
    data = datum;
    is_done = false;
    return self.open(bytes, &coroutine::entry, this);
  }

  void resume(context& from) {
    resumer = &from;
    context::switch_to(from, self);
  }

  void pause() { context::switch_to(self, *resumer); }

  template <class T>
  T& as() {
    return *static_cast<T*>(data);
  }

 private:
  static void entry(void* argument) {
    auto& me = *static_cast<coroutine*>(argument);
    me.body(me);
    me.is_done = true;
    context::finish_to(me.self, *me.resumer);
  }
};

}  // namespace lev::test
