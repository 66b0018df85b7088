// A filter chooses the order in which waiting tasks run: here, larger priority first.
#include <leveret/leveret.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

constexpr int count = 100;
constexpr int given_out_max = 8;  // tasks that workers were given before the rest arrived
std::vector<int> order;

void note(int priority) {
  order.push_back(priority);
}
const auto note_procedure = lev::define("note", note);

// The data that a task needs to submit others. A bare pointer is not an argument, as it does not
// say what is read and written.
struct where {
  lev::runtime* runtime;
};

// While this task keeps the only worker, its children have to wait.
void submit_all(where here) {
  for (int i = 0; i < count; ++i) {
    const int priority = i * 37 % count;
    here.runtime->submit(lev::options().priority(priority), note_procedure, priority);
  }
}

int main() {
  const auto submit_all_procedure = lev::define("submit_all", submit_all);
  lev::config config;
  config.workers = 1;
  config.wait = lev::wait_policy::park;  // this thread runs no tasks: `order` has one writer
  lev::runtime runtime(config);
  if (runtime.set_filters({lev::filters::priority()}) != lev::status::ok) return 1;

  runtime.submit(submit_all_procedure, where{&runtime});
  const bool done = runtime.wait_for_completion().code == lev::status::ok && order.size() == count;
  for (const int priority : order) std::printf("%d ", priority);
  std::puts("<- order of priorities");
  return done && std::is_sorted(order.begin() + given_out_max, order.end(), std::greater<>()) ? 0
                                                                                              : 1;
}
