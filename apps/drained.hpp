// Tasks use their caller's memory until they are complete: when an exception unwinds the caller,
// wait for them first.
#pragma once

#include <leveret/leveret.hpp>

namespace leveret_apps {

template <class Work>
void drained(lev::runtime& runtime, Work&& work) {
  try {
    work();
  } catch (...) {
    runtime.wait_for_completion();
    throw;
  }
}

}  // namespace leveret_apps
