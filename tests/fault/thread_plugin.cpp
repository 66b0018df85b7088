// A plugin that has a Leveret of its own.
#include <leveret/leveret.hpp>

extern "C" int use_leveret() {
  static const auto add =
      lev::define("plugin.add", [](int a, int b, lev::result<int> sum) { sum = a + b; });
  int sum = 0;
  lev::runtime r;
  r.submit(add, 40, 2, sum).wait();
  return sum;
}
