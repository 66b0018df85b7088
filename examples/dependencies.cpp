// after(): a task starts when the tasks it names are complete. No thread waits for them.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <vector>

void fill(int value, lev::out<int> all) {
  for (int& element : all) element = value;
}
void add(lev::in<int> a, lev::in<int> b, lev::out<int> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
}

int main() {
  const auto fill_procedure = lev::define("fill", fill);
  const auto add_procedure = lev::define("add", add);
  std::vector<int> a(100), b(100), sum(100);

  lev::runtime runtime;
  const lev::ticket left = runtime.submit(fill_procedure, 1, a);
  const lev::ticket right = runtime.submit(fill_procedure, 2, b);
  runtime.submit(lev::after(left, right), add_procedure, a, b, sum).wait();
  std::printf("1 + 2 = %d\n", sum[99]);
  return sum[0] == 3 && sum[99] == 3 ? 0 : 1;
}
