// Many tasks behind one ticket: one call, one wait.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <vector>

void square(int root, lev::result<int> squared) {
  squared = root * root;
}

int main() {
  constexpr std::size_t count = 1000;
  const auto square_procedure = lev::define("square", square);
  std::vector<int> squares(count);

  lev::runtime runtime;
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    task = lev::pack(square_procedure, static_cast<int>(i), squares[i]);
  };
  runtime.submit_bulk(count, make).wait();

  long sum = 0;
  for (const int s : squares) sum += s;
  std::printf("the squares of 0 to 999 add up to %ld\n", sum);
  return sum == 332833500 ? 0 : 1;
}
