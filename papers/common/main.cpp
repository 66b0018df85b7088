// leveret-papers [ROW ...]: rows of the papers' results, one line each; `leveret repro` makes
// tables.
#include <cstdio>
#include <cstring>
#include <exception>

#include <leveret_papers/expected.hpp>
#include <leveret_papers/world.hpp>

namespace {

void print(const leveret_papers::expected_row& r) {
  const leveret_papers::outcome o = leveret_papers::simulate_row(r.id);
  const bool is_in = o.value >= r.low && o.value <= r.high;
  std::printf("%-16s %-11s printed %10.4g simulated %10.4g band %8.4g %8.4g %s  %.2f s %.1f M/s\n",
              r.id.c_str(), r.role.c_str(), r.printed, o.value, r.low, r.high,
              is_in ? "in " : "OUT", o.seconds, double(o.events) / o.seconds * 1e-6);
  if (!o.failure.empty()) std::printf("%s\n", o.failure.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  try {
    for (const auto& r : leveret_papers::expected_rows()) {
      bool is_asked = count == 1;
      for (int i = 1; i < count; ++i)
        is_asked = is_asked || std::strncmp(words[i], r.id.c_str(), std::strlen(words[i])) == 0;
      if (is_asked) print(r);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "leveret-papers: %s\n", e.what());
    return 1;
  }
  return 0;
}
