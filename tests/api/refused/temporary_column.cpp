// The elements of a temporary are gone when the tasks of the bulk run.
#include <leveret/leveret.hpp>

#include <array>
#include <span>

struct four {
  int at[4];
  int* data() { return at; }
  const int* data() const { return at; }
  std::size_t size() const { return 4; }
};

void program(lev::runtime& r, lev::procedure<void(int)> p) {
#ifdef RIGHT
  const four x = {{1, 2, 3, 4}};
  r.submit_bulk(4, p, lev::each(x)).wait();
  r.submit_bulk(4, p, lev::each(std::span<const int>(x.at))).wait();
#else
  r.submit_bulk(4, p, lev::each(four{{1, 2, 3, 4}})).wait();
#endif
}
