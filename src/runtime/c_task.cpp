// this_task() for C: the same calls, with statuses. Far memory is the argument that declares it.
#include <leveret/leveret.h>
#include <leveret/this_task.hpp>

#include "runtime/c_status.hpp"

#include <cstdio>
#include <utility>

static_assert(LEV_FAR == lev::argument_far && LEV_TASK_TAGS == lev::task_tags);
static_assert(LEV_ALIGN_128 == lev::align_flags(128) && LEV_ALIGN_4096 == lev::align_flags(4096) &&
              lev::align_flags(64) == 0 && LEV_PACKED == lev::argument_packed &&
              LEV_EACH == lev::argument_each);

namespace {

using lev::bad_argument;
using lev::fail;
using lev::guarded;

// The part of far memory that a call means.
struct part {
  unsigned char* data;
  std::size_t size;
  std::size_t first;
  std::size_t count;
};

// LEV_OK, and the part in bytes; else why not. `writes` asks for memory that was declared as inout
// or out.
lev_status find_part(const char* call, const lev_argument* far, std::size_t first,
                     std::size_t count, bool writes, part* meant) noexcept {
  char message[200];
  if (far == nullptr || (far->flags & LEV_FAR) == 0 || far->rows != 1 || far->unit_bytes == 0 ||
      (far->what != LEV_IN && far->what != LEV_INOUT && (!writes || far->what != LEV_OUT))) {
    std::snprintf(message, sizeof message,
                  "%s: `far` is no argument of the call with the flag LEV_FAR that may be %s", call,
                  writes ? "written" : "read");
    return bad_argument(message);
  }
  if (writes && far->what == LEV_IN) {
    std::snprintf(message, sizeof message, "%s: this far memory was declared as LEV_IN", call);
    return bad_argument(message);
  }
  const std::uint64_t size = far->row_bytes / far->unit_bytes;
  if (first > size || count > size - first) {
    std::snprintf(message, sizeof message,
                  "%s: %zu elements from %zu of far memory that was declared with %llu; declare "
                  "more, or check the index",
                  call, count, first, static_cast<unsigned long long>(size));
    return fail(lev::status::bad_range, message);
  }
  *meant = {reinterpret_cast<unsigned char*>(far->address), far->row_bytes, first * far->unit_bytes,
            count * far->unit_bytes};
  return LEV_OK;
}

}  // namespace

struct lev_thread {
  struct call {
    lev_thread_body body;
    void* argument;
    void operator()() const { body(argument); }
  };
  lev_thread(lev::task_context& task, call function) : thread(task.spawn(function)) {}
  lev::thread_of<call> thread;
};

extern "C" {

lev_status lev_task_get(const lev_argument* far, size_t first, size_t count, unsigned tag,
                        void** data) {
  if (data == nullptr) return bad_argument("lev_task_get: data must not be NULL");
  *data = nullptr;
  return guarded([&] {
    auto task = lev::this_task();
    part p;
    const lev_status s = find_part("lev_task_get", far, first, count, false, &p);
    if (s == LEV_OK)
      *data = task.get(lev::far<unsigned char>(p.data, p.size), p.first, p.count, tag);
    return s;
  });
}

lev_status lev_task_put(const lev_argument* far, size_t first, size_t count, const void* values,
                        unsigned tag) {
  if (values == nullptr && count != 0) return bad_argument("lev_task_put: values must not be NULL");
  return guarded([&] {
    auto task = lev::this_task();
    part p;
    const lev_status s = find_part("lev_task_put", far, first, count, true, &p);
    if (s == LEV_OK)
      task.put(lev::far<unsigned char>(p.data, p.size), p.first, p.count,
               static_cast<const unsigned char*>(values), tag);
    return s;
  });
}

lev_status lev_task_wait(unsigned tag) {
  return guarded([&] { lev::this_task().wait(tag); });
}

lev_status lev_task_wait_all(uint32_t tags) {
  return guarded([&] { lev::this_task().wait_all(tags); });
}

lev_status lev_task_yield(void) {
  return guarded([] { lev::this_task().yield(); });
}

lev_status lev_task_pass_time(uint64_t cycles) {
  return guarded([&] { lev::this_task().pass_time(cycles); });
}

lev_status lev_task_spawn(lev_thread_body body, void* argument, lev_thread** thread) {
  if (thread != nullptr) *thread = nullptr;
  if (body == nullptr || thread == nullptr)
    return bad_argument("lev_task_spawn: body and thread must not be NULL");
  return guarded([&] {
    auto task = lev::this_task();
    *thread = new lev_thread(task, {body, argument});
  });
}

lev_status lev_task_join(lev_thread* thread) {
  if (thread == nullptr) return LEV_OK;
  // Outside a task the thread stays. What its body has thrown is no refusal, whatever it says.
  const lev_status refused = guarded([] { lev::this_task(); });
  if (refused != LEV_OK) return refused;
  const lev_status s = guarded([&] { thread->thread.join(); });
  delete thread;
  return s == LEV_OK ? LEV_OK : LEV_TASK_FAILED;
}

lev_status lev_task_id(unsigned* id) {
  if (id == nullptr) return bad_argument("lev_task_id: id must not be NULL");
  return guarded([&] { *id = lev::this_task().id(); });
}

lev_status lev_task_stack_left(size_t* bytes) {
  if (bytes == nullptr) return bad_argument("lev_task_stack_left: bytes must not be NULL");
  return guarded([&] { *bytes = lev::this_task().stack_left(); });
}

const lev_task_calls* lev_task_table(void) {
  static constexpr lev_task_calls table = {
      &lev_task_get,   &lev_task_put,       &lev_task_wait,  &lev_task_wait_all,
      &lev_task_yield, &lev_task_pass_time, &lev_task_spawn, &lev_task_join,
      &lev_task_id,    &lev_task_stack_left};
  return &table;
}

}  // extern "C"
