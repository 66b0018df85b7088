// StarPU: codelets without data, workers on the CPU cores only, paused while others are measured
// (they poll).
#include "peers/peers.hpp"

#include <starpu.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

struct session {
  session() {
    // Its calibration files do not belong into the user's home directory.
    const auto folder = std::filesystem::temp_directory_path() / "leveret-bench-starpu";
    setenv("STARPU_HOME", folder.c_str(), 0);
    setenv("STARPU_SILENT", "1", 0);
    // A core of its own for the submitter: it is faster so.
    if (std::thread::hardware_concurrency() > 1) setenv("STARPU_RESERVE_NCPU", "1", 0);
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncuda = 0;
    conf.nopencl = 0;
    if (starpu_init(&conf) != 0) throw std::runtime_error("StarPU does not start");
    starpu_pause();
  }
  ~session() {
    starpu_resume();
    starpu_shutdown();
  }
};

struct work_item {
  void (*work)(std::uint64_t);
  std::uint64_t value;
};

void run_nothing(void**, void*) {}

void run_work(void**, void* argument) {
  const auto* item = static_cast<const work_item*>(argument);
  item->work(item->value);
}

void submit_all(std::size_t count, void (*function)(void**, void*), work_item* item) {
  static session open;
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.cpu_funcs[0] = function;
  codelet.nbuffers = 0;
  starpu_resume();
  for (std::size_t i = 0; i < count; ++i) {
    starpu_task* task = starpu_task_create();
    task->cl = &codelet;
    task->cl_arg = item;
    task->cl_arg_size = sizeof *item;
    task->detach = 1;
    task->destroy = 1;
    if (starpu_task_submit(task) != 0) throw std::runtime_error("StarPU refuses a task");
  }
  starpu_task_wait_for_all();
  starpu_pause();
}

void stream(std::size_t count, void (*work)(std::uint64_t), std::uint64_t value) {
  work_item item{work, value};
  submit_all(count, run_work, &item);
}

void null_stream(std::size_t count) {
  submit_all(count, run_nothing, nullptr);
}

}  // namespace

const peer* starpu_peer() {
  static constexpr peer table{"StarPU", stream, null_stream, nullptr, nullptr, nullptr};
  return &table;
}

}  // namespace bench
