// ordered: the loops of a serial program, whose calls are tasks. Their order follows from the
// blocks that they declare. Here: A = L * L', by blocks of one matrix.
#include <leveret/leveret.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

constexpr std::size_t n = 192, b = 32;  // elements in a row of the matrix, and of a block

void factor(lev::inout<double> a) {
  for (std::size_t k = 0; k < b; ++k) {
    a.row(k)[k] = std::sqrt(a.row(k)[k]);
    for (std::size_t i = k + 1; i < b; ++i) a.row(i)[k] /= a.row(k)[k];
    for (std::size_t i = k + 1; i < b; ++i)
      for (std::size_t j = k + 1; j <= i; ++j) a.row(i)[j] -= a.row(i)[k] * a.row(j)[k];
  }
}
void solve(lev::in<double> l, lev::inout<double> a) {
  for (std::size_t i = 0; i < b; ++i)
    for (std::size_t j = 0; j < b; ++j) {
      for (std::size_t k = 0; k < j; ++k) a.row(i)[j] -= a.row(i)[k] * l.row(j)[k];
      a.row(i)[j] /= l.row(j)[j];
    }
}
void update(lev::in<double> x, lev::in<double> y, lev::inout<double> a) {
  for (std::size_t i = 0; i < b; ++i)
    for (std::size_t j = 0; j < b; ++j)
      for (std::size_t k = 0; k < b; ++k) a.row(i)[j] -= x.row(i)[k] * y.row(j)[k];
}

int main() {
  const auto factor_procedure = lev::define("factor", factor);
  const auto solve_procedure = lev::define("solve", solve);
  const auto update_procedure = lev::define("update", update);
  std::vector<double> a(n * n);
  for (std::size_t i = 0; i < n * n; ++i) a[i] = i % (n + 1) == 0 ? 2.0 : 1.0;  // on the diagonal
  const auto at = [&a](std::size_t i, std::size_t j) {
    return lev::strided(&a[i * b * n + j * b], b, b, n);
  };

  lev::runtime runtime;
  lev::ordered tasks(runtime);
  for (std::size_t k = 0; k < n / b; ++k) {
    tasks.submit(factor_procedure, at(k, k));
    for (std::size_t i = k + 1; i < n / b; ++i) tasks.submit(solve_procedure, at(k, k), at(i, k));
    for (std::size_t i = k + 1; i < n / b; ++i)
      for (std::size_t j = k + 1; j <= i; ++j)
        tasks.submit(update_procedure, at(i, k), at(j, k), at(i, j));
  }
  tasks.wait();

  double worst = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k <= j; ++k) sum += a[i * n + k] * a[j * n + k];
      worst = std::fmax(worst, std::fabs(sum - (i == j ? 2.0 : 1.0)));
    }
  std::printf("L * L' differs from A by %.1e at most\n", worst);
  return worst < 1e-12 ? 0 : 1;
}
