// A loop's body gets a range: what it does once for a piece need not be done for each index.
#include <leveret/leveret.hpp>

void program(lev::runtime& r, float* x) {
#ifdef RIGHT
  r.parallel_for({0, 10}, [&](lev::range piece) {
    for (auto i = piece.begin; i < piece.end; ++i) x[i] = 1;
  });
#else
  r.parallel_for({0, 10}, [&](std::size_t i) { x[i] = 1; });
#endif
}
