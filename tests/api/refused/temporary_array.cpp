// A std::array owns its elements, though it has nothing to destroy; a temporary view owns none.
#include <leveret/leveret.hpp>

#include <array>
#include <span>
#include <string_view>

struct view_of_two {
  int* first;
  int* data() const { return first; }
  std::size_t size() const { return 2; }
};

std::array<int, 4> make();

void program(lev::runtime& r, lev::procedure<void(lev::in<int>)> p,
             lev::procedure<void(lev::in<char>)> text) {
#ifdef RIGHT
  std::array<int, 4> x = make();
  r.submit(p, x).wait();
  r.submit(p, std::span<const int>(x)).wait();
  r.submit(p, std::span<int, 4>(x)).wait();
  r.submit(p, view_of_two{x.data()}).wait();
  r.submit(p, lev::in<int>(x.data(), 4)).wait();
  r.submit(text, std::string_view("abc")).wait();
#else
  r.submit(p, make()).wait();
  (void)text;
#endif
}
