/* Tasks that get their data themselves, with nothing but the header that comes with the package. */
#include <leveret/leveret.h>

/* Follows a list of indices from `first` to -1, and counts. */
int length(const lev_task_calls* task, const lev_argument* behind, int64_t first, int64_t* found) {
  *found = 0;
  for (int64_t at = first; at >= 0; ++*found) {
    void* next;
    const lev_status code = task->get(behind, (size_t)at, 1, 0, &next);
    if (code != LEV_OK) return (int)code;
    task->wait(0);
    at = *(const int64_t*)next;
  }
  return 0;
}

/* Adds 1 to count elements from first on. */
int add_one(const lev_task_calls* task, const lev_argument* x, size_t size, uint64_t first,
            uint64_t count) {
  void* got;
  if (first + count > size) return -1;
  if (task->get(x, first, count, 3, &got) != LEV_OK) return 1;
  task->wait(3);
  double* values = got;
  for (uint64_t i = 0; i < count; ++i) values[i] += 1;
  if (task->put(x, first, count, values, 3) != LEV_OK) return 2;
  return (int)task->wait_all(1u << 3);
}

/* Gets count elements from the first on, and says what get() said. */
int get_some(const lev_task_calls* task, const lev_argument* x, size_t count) {
  void* got;
  return (int)task->get(x, 0, count, 0, &got);
}
