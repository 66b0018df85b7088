// Take results in the order in which tasks finish, not in which they were submitted.
#include <leveret/leveret.hpp>

#include <cstdio>

void collatz_steps(unsigned long start, lev::result<unsigned> steps) {
  unsigned count = 0;
  for (unsigned long n = start; n != 1; ++count) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  steps = count;
}

int main() {
  constexpr std::size_t count = 8;
  const auto procedure = lev::define("collatz_steps", collatz_steps);
  unsigned steps[count] = {};
  lev::ticket tickets[count];

  lev::runtime runtime;
  for (std::size_t i = 0; i < count; ++i) tickets[i] = runtime.submit(procedure, i + 20, steps[i]);

  unsigned sum = 0;
  for (std::size_t finished = 0; finished < count; ++finished) {
    std::size_t index = 0;
    if (lev::wait_any(tickets, count, &index).code != lev::status::ok) return 1;
    sum += steps[index];  // tickets[index] is empty now: the next wait passes over it
  }
  std::size_t index = 0;
  const bool none_left = lev::wait_any(tickets, count, &index).code == lev::status::bad_argument;
  std::printf("the sequences from 20 to 27 take %u steps\n", sum);
  return sum == 7 + 7 + 15 + 15 + 10 + 23 + 10 + 111 && none_left ? 0 : 1;
}
