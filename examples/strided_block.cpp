// A block of a matrix as an argument: rows that lie apart in memory arrive as rows of a view.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <vector>

void transpose(lev::in<int> from, lev::out<int> to) {
  for (std::size_t r = 0; r < from.rows(); ++r) {
    for (std::size_t c = 0; c < from.row_size(); ++c) to.row(c)[r] = from.row(r)[c];
  }
}

int main() {
  constexpr std::size_t side = 128;
  constexpr std::size_t block = 32;
  const auto transpose_procedure = lev::define("transpose", transpose);
  std::vector<int> a(side * side), b(side * side);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int>(i);

  lev::runtime runtime;
  const auto block_of = [&](std::vector<int>& matrix, std::size_t row, std::size_t column) {
    return lev::strided(&matrix[row * side + column], block, block, side);
  };
  for (std::size_t r = 0; r < side; r += block) {
    for (std::size_t c = 0; c < side; c += block) {
      runtime.post(transpose_procedure, block_of(a, r, c), block_of(b, c, r));
    }
  }
  bool good = runtime.wait_for_completion().code == lev::status::ok;

  for (std::size_t r = 0; r < side; ++r) {
    for (std::size_t c = 0; c < side; ++c) good = good && b[c * side + r] == a[r * side + c];
  }
  std::printf("transposed %zu blocks: %s\n", side / block * (side / block),
              good ? "right" : "wrong");
  return good ? 0 : 1;
}
