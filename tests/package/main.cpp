// A user's program in C++: three tasks, two procedures and one refusal, through public headers
// only. Built by tools/check package through find_package, add_subdirectory and pkg-config.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <vector>

namespace {

void scale(float factor, lev::inout<float> values) {
  for (float& value : values) value *= factor;
}

void sum(lev::in<float> values, lev::result<float> total) {
  float so_far = 0;
  for (const float value : values) so_far += value;
  total = so_far;
}

}  // namespace

int main() {
  const auto scale_procedure = lev::define("scale", scale);
  const auto sum_procedure = lev::define("sum", sum);
  std::vector<float> values(1000, 1.0F);
  float total = 0;

  lev::runtime runtime;
  runtime.submit(scale_procedure, 3.0F, values).wait();
  runtime.submit(sum_procedure, values, total).wait();
  std::printf("leveret %d.%d on %s: %g\n", LEV_VERSION_MAJOR, LEV_VERSION_MINOR, runtime.machine(),
              static_cast<double>(total));
  return total == 3000.0F ? 0 : 1;
}
