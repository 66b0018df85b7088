// One large task, cut by Leveret into as many pieces as the workers need; and the same as a loop
// body in place.
#include <leveret/leveret.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

// Dicing cuts the range and both sliced arguments alike: piece by piece, x[i] belongs to index
// indices.begin + i.
void wave(lev::range indices, lev::in<double> x, lev::out<double> y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = std::sin(x[i]) * static_cast<double>(indices.begin + i);
  }
}

int main() {
  constexpr std::size_t count = 100000;
  const auto wave_procedure = lev::define("wave", wave);
  std::vector<double> x(count), by_task(count), by_loop(count);

  lev::runtime runtime;
  runtime.parallel_for({0, count}, [&](lev::range piece) {
    for (std::size_t i = piece.begin; i < piece.end; ++i) x[i] = 0.001 * static_cast<double>(i);
  });
  runtime.submit(wave_procedure, lev::range{0, count}, lev::sliced(x), lev::sliced(by_task)).wait();
  runtime.parallel_for({0, count}, [&](lev::range piece) {
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
      by_loop[i] = std::sin(x[i]) * static_cast<double>(i);
    }
  });
  std::printf("1 task and 2 loops became %llu tasks\n",
              static_cast<unsigned long long>(runtime.count().submitted));
  return by_task == by_loop && by_task[count - 1] != 0 ? 0 : 1;
}
