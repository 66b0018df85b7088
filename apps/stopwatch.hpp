// Two stopwatches: this computer's clock for serial references, the machine's for tasks (virtual
// time on `sim`).
#pragma once

#include <chrono>
#include <leveret/leveret.hpp>

namespace leveret_apps {

template <class Work>
double host_seconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Work>
double machine_seconds(const lev::runtime& runtime, Work&& work) {
  const auto start = runtime.now_ns();
  work();
  return static_cast<double>(runtime.now_ns() - start) * 1e-9;
}

}  // namespace leveret_apps
