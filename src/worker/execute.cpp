// execute: what a body has thrown.
#include "worker/execute.hpp"

#include "worker/columns.hpp"

namespace lev {

// Keeps a body's exception: that of a bulk over columns says where it has stopped.
void note_thrown(engine& e, job& j) noexcept {
  slot_extra& extra = e.task_slots.extra(j.task);
  j.result = status::task_failed;
  j.task_code = 0;
  extra.stopped_at = no_index;
  try {
    throw;
  } catch (const stopped_range& s) {
    extra.stopped_at = s.at();
    j.result = s.code();
    j.task_code = s.task_code();
    if (j.result != status::cancelled)
      e.task_slots.keep_exception(j.task, std::make_exception_ptr(error(s.code(), -1, s.what())));
  } catch (...) {
    e.task_slots.keep_exception(j.task, std::current_exception());
  }
}

}  // namespace lev
