// The first task: a function that says what it reads and writes, and a runtime that runs it on a
// worker.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <vector>

void saxpy(float a, lev::in<float> x, lev::inout<float> y, lev::result<float> first) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
  first = y[0];
}

int main() {
  const auto saxpy_procedure = lev::define("saxpy", saxpy);
  lev::runtime runtime;  // threads, one worker for each core but this one
  std::vector<float> x(1000, 1.0f), y(1000, 2.0f);
  float first = 0;
  runtime.submit(saxpy_procedure, 3.0f, x, y, first).wait();
  std::printf("y[0] = %g, y[999] = %g\n", first, y[999]);
  return first == 5 && y[999] == 5 ? 0 : 1;
}
