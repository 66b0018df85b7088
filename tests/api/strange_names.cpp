// What the typed front must take from a program, whichever compiler it has: element types of a
// namespace with functions of Leveret's names, and procedures that are noexcept. Compiled by g++,
// as a part of api_tests, and by clang++ where there is one, as a program.
#include "api/strange_names.h"

#include <leveret/leveret.hpp>

#include <cstddef>
#include <vector>

namespace names {

struct item {
  int value;
};

// As good as Leveret's own, for items.
template <class T>
int view(T*, std::size_t) {
  return 0;
}
template <class T>
int each(T*, std::size_t) {
  return 0;
}
template <class T>
int as_memory(T&&) {
  return 0;
}
template <class... Parts>
int pack(Parts&&...) {
  return 0;
}
template <class F>
int describe(const char*, F) {
  return 0;
}
template <class F, class C, class L>
int apply(F&&, C&&, L&&) {
  return 0;
}

void add(lev::in<item> x, lev::inout<item> y, item more) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) y[i].value += x[i].value + more.value;
}
LEV_PROCEDURE(add);

void add_far(lev::far<const item> x, lev::inout<item> y) {
  lev::runtime r;
  r.submit<add>(x, y, item{0}).wait();
}

}  // namespace names

int lev_sum_of_strange_names() {
  using names::item;
  const auto add = lev::define("names.add", names::add);
  const auto add_far = lev::define("names.add_far", names::add_far);
  const std::vector<item> x = {{1}, {1}};
  std::vector<item> y = {{0}, {0}};
  lev::runtime r;
  r.submit(add, x, y, item{1}).wait();
  r.submit<names::add>(x, lev::view(y.data(), y.size()), item{1}).wait();
  r.post<names::add>(lev::sliced(x), lev::sliced(y), item{1});
  r.wait_for_completion();
  r.submit_bulk(2, add, lev::each(x), lev::each(y), item{1}).wait();
  lev::ordered scope(r);
  scope.submit<names::add>(x, y, item{1});
  scope.submit(add_far, x, y);
  scope.wait();
  return y[0].value + y[1].value;
}
