// A plugin that has a Leveret of its own.
#include <leveret/leveret.hpp>

#include <cstdio>

extern "C" int use_leveret() {
  static const auto add =
      lev::define("plugin.add", [](int a, int b, lev::result<int> sum) { sum = a + b; });
  int sum = 0;
  lev::runtime r;
  r.submit(add, 40, 2, sum).wait();
  return sum;
}

// Empty if they work.
extern "C" const char* why_no_processes() {
  static char text[256];
  lev::config c;
  c.machine = "processes";
  c.workers = 1;
  try {
    lev::runtime r(c);
  } catch (const lev::error& e) {
    std::snprintf(text, sizeof text, "%s", e.what());
  }
  return text;
}
