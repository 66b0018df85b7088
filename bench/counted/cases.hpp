// The programs whose instructions are counted, each called twice: the difference is what the tasks
// of the second call have in excess, so that start-up drops out.
#pragma once

namespace bench::counted {

// A case: how much work its two calls do, and how many tasks more the second one has. The range of
// `bulk` is so large that the number of its pieces does not depend on what a task takes: callgrind
// makes them slow (flow/item_costs.hpp).
struct counted_case {
  const char* name;
  const char* goal;
  unsigned less;
  unsigned more;
  unsigned tasks;
};
inline constexpr counted_case cases[] = {
    {"empty", "<= 300", 320, 640, 320},
    {"three_arrays", "<= 550", 320, 640, 320},
    {"five_arguments", "", 320, 640, 320},
    {"fib_spawn", "<= 350", 12, 16, 1596 - 232},
    {"bulk", "<= 60", 1 << 16, 1 << 17, 1 << 16},
    {"bulk_in_order", "", 1000, 3000, 2000},
    {"bulk_columns", "<= 60", 1 << 16, 1 << 17, 1 << 16},
    {"bulk_ahead", "", 1 << 16, 1 << 17, 1 << 16},
    {"ordered", "", 12, 16, 816 - 364},
};

// run() does both calls of a case in a runtime whose one worker is held in a task. The host, which
// helps while it waits, is on both sides, so nothing depends on which side is faster. Callgrind
// counts inside lev_bench_counted(), and writes what it counted when that returns. Throws
// std::exception where an answer is wrong.
void run(const counted_case& which);

// Instructions of one empty task on `processes`. Host: submit and wait. Worker: from the body of a
// task to that of the next.
struct process_count {
  double host = 0;
  double worker = 0;
};

// count_processes() steps through both processes: callgrind cannot run worker processes. If it
// `prints`, it lists the instructions (stepper.cpp). Throws std::exception where that is not to be
// had, and says why.
process_count count_processes(unsigned rounds, bool prints = false);

}  // namespace bench::counted
