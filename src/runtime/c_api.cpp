// The C API over the C++ one. Nothing throws through it; the last message of each thread says what
// went wrong.
#include <leveret/leveret.h>
#include <leveret/interleave.hpp>
#include <leveret/leveret.hpp>

#include "base/numbers.hpp"
#include "runtime/c_call.hpp"
#include "runtime/c_status.hpp"
#include "task/validate.hpp"

#include <cstdio>
#include <cstring>
#include <new>

// The C structs are the C++ ones: checked here, relied on below.
static_assert(sizeof(lev_argument) == sizeof(lev::argument) &&
              offsetof(lev_argument, what) == offsetof(lev::argument, what));
static_assert(sizeof(lev_call) == sizeof(lev::call) &&
              offsetof(lev_call, context) == offsetof(lev::call, context));
static_assert(LEV_TOO_LATE == static_cast<int>(lev::status::too_late) &&
              LEV_RANGE == static_cast<int>(lev::kind::range));
static_assert(sizeof(lev_counters) == sizeof(lev::counters) &&
              offsetof(lev_counters, reruns) == offsetof(lev::counters, reruns));
static_assert(LEV_STAGING_COPY == static_cast<int>(lev::staging::copy) &&
              LEV_WAIT_OF_RUNTIME == static_cast<int>(lev::wait_policy::of_runtime) &&
              LEV_ISOLATION_CONFINED == static_cast<int>(lev::isolation::confined) &&
              LEV_FULL_FAIL == static_cast<int>(lev::when_full::fail));
static_assert(sizeof(lev_strand) == sizeof(lev::strand) &&
              LEV_STRANDS_AUTOMATIC == lev::strands_automatic);
static_assert(LEV_ARGUMENTS_MAX == lev::argument_count_max && sizeof(lev_kind) == sizeof(int));

namespace {

using lev::answer;
using lev::bad_argument;
using lev::check_arguments;
using lev::draft_of;
using lev::fail;
using lev::fail_in;
using lev::guarded;
using lev::report;

// A procedure registered from C: its body takes a pointer where C++ takes a reference.
struct c_procedure {
  lev_body body;
  void* context;
  lev::portable_context portable{};
};
void* rebuild_c(const void* bytes, unsigned, void* function) {
  c_procedure made{reinterpret_cast<lev_body>(function), nullptr};
  std::memcpy(&made.context, bytes, sizeof made.context);
  return new c_procedure(made);
}
// A worker process finds the body where it is linked, and the context at the host's address.
bool make_portable(c_procedure& p) noexcept {
  if (p.context != nullptr && !lev::is_shared(p.context, 1)) return false;
  p.portable = {&p.context, sizeof p.context, reinterpret_cast<void*>(p.body), &rebuild_c};
  return true;
}
int run_c(const lev::call& c) {
  const auto& p = *static_cast<const c_procedure*>(c.context);
  const lev_call view{reinterpret_cast<const lev_argument*>(c.arguments), c.argument_count,
                      p.context};
  return p.body(&view);
}

// Arguments that were checked. Without `ticket`, the task cannot be waited for by itself.
lev_status submit(lev_runtime* runtime, lev_procedure_id procedure, const lev_argument* arguments,
                  unsigned count, const lev::options* o, lev_ticket* ticket) noexcept {
  const lev::detail::draft d = draft_of(procedure, arguments, count);
  lev::refusal why;
  const bool detached = ticket == nullptr;
  const lev_ticket made = lev::detail::try_submit(runtime->runtime.state(), d, o, detached, &why);
  if (made == 0) return fail(why.code, why.message);
  if (!detached) *ticket = made;
  return LEV_OK;
}

// An item's body with its argument. Its strand is NULL where a C++ item gets lev::direct.
struct c_item {
  lev_item body;
  void* argument;
  bool* has_thrown;
  void operator()(std::size_t i, lev::strand& s) const {
    run(i, reinterpret_cast<lev_strand*>(&s));
  }
  void operator()(std::size_t i, lev::direct&) const { run(i, nullptr); }

 private:
  void run(std::size_t i, lev_strand* s) const {
    try {
      body(i, s, argument);
    } catch (...) {
      *has_thrown = true;
      throw;
    }
  }
};

// The choices for the bodies that this thread ran last: C++ tells them apart by their types.
lev::detail::tuner& tuner_of(lev_item body) {
  struct memory {
    lev_item body = nullptr;
    lev::detail::tuner found;
  };
  constexpr unsigned kept = 8;
  static thread_local memory memories[kept];
  static thread_local unsigned oldest = 0;
  for (memory& m : memories) {
    if (m.body == body) return m.found;
  }
  memory& m = memories[oldest++ % kept];
  m = {body, {}};
  return m.found;
}

// What `call` was given. A refused submit leaves no ticket.
lev_status check_given(const char* call, const lev_runtime* runtime, lev_ticket* ticket,
                       const lev_argument* arguments, unsigned count) noexcept {
  if (ticket != nullptr) *ticket = 0;
  if (runtime == nullptr || ticket == nullptr)
    return fail_in(call, lev::status::bad_argument, "runtime and ticket must not be NULL");
  return check_arguments(call, arguments, count);
}

lev_status submit_with(const char* call, lev_runtime* runtime, lev_procedure_id procedure,
                       const lev_argument* arguments, unsigned count,
                       const lev_task_options& options, lev_ticket* ticket) noexcept {
  lev::options o;
  // Before the ticket is set to 0: a chain has the ticket of its last task among those of `after`.
  const lev_status read = lev::read_options(call, options, &o);
  if (const lev_status s = check_given(call, runtime, ticket, arguments, count); s != LEV_OK)
    return s;
  return read != LEV_OK ? read : submit(runtime, procedure, arguments, count, &o, ticket);
}

// The largest multiple of an element that fits a word stands for all larger ones: the submit
// refuses it.
uint64_t bytes_of(size_t element_bytes, size_t count) noexcept {
  uint64_t bytes = 0;
  if (lev::checked_multiply(element_bytes, count, &bytes)) return bytes;
  return UINT64_MAX - UINT64_MAX % element_bytes;
}

// An enumeration from C may hold any number, which C++ must not read as the enumeration.
template <class Enumeration>
int number_of(const Enumeration& e) noexcept {
  static_assert(sizeof e == sizeof(int));
  int number = 0;
  std::memcpy(&number, &e, sizeof number);
  return number;
}
template <class Enumeration>
bool is_up_to(const Enumeration& e, int last) noexcept {
  return number_of(e) >= 0 && number_of(e) <= last;
}

constexpr const char* how_is = "how is one of lev_wait_policy";

lev_status wait_by(const char* call, lev_runtime* runtime, lev_ticket ticket, int64_t timeout_ns,
                   const lev_wait_policy& how, lev_outcome* outcome) noexcept {
  if (runtime == nullptr)
    return fail_in(call, lev::status::bad_argument, "runtime must not be NULL");
  if (!is_up_to(how, LEV_WAIT_OF_RUNTIME)) return fail_in(call, lev::status::bad_argument, how_is);
  return report(lev::detail::wait_one(runtime->runtime.state(), ticket, timeout_ns,
                                      static_cast<lev::wait_policy>(how)),
                outcome);
}

lev_status wait_any_by(const char* call, lev_runtime* runtime, lev_ticket* tickets, size_t count,
                       int64_t timeout_ns, const lev_wait_policy& how, size_t* index,
                       lev_outcome* outcome) noexcept {
  if (runtime == nullptr || index == nullptr || (count != 0 && tickets == nullptr))
    return fail_in(call, lev::status::bad_argument, "runtime, tickets and index must not be NULL");
  if (!is_up_to(how, LEV_WAIT_OF_RUNTIME)) return fail_in(call, lev::status::bad_argument, how_is);
  return report(lev::detail::wait_any_id(runtime->runtime.state(), tickets, count, index,
                                         timeout_ns, static_cast<lev::wait_policy>(how)),
                outcome);
}

// Sets the fields that are for worker processes.
bool set_limits(const lev_options& options, lev::config* c) noexcept {
  if (!is_up_to(options.isolation, LEV_ISOLATION_CONFINED)) return false;
  c->processes.isolation = static_cast<lev::isolation>(options.isolation);
  if (options.max_attempts != 0) c->processes.max_attempts = options.max_attempts;
  if (options.restarts_max != 0) c->processes.restarts_max = options.restarts_max;
  c->processes.worker_cpu_seconds_max = options.worker_cpu_seconds_max;
  c->processes.task_ns_max = options.task_ns_max;
  c->processes.worker_bytes_max = options.worker_bytes_max;
  c->processes.pool = options.pool;
  return true;
}

}  // namespace

extern "C" {

const char* lev_version(void) {
  return lev::version();
}
const char* lev_status_name(lev_status code) {
  // Not by its lowest bits, which are all that the C++ enumeration has.
  return is_up_to(code, 0xff) ? lev::status_name(static_cast<lev::status>(number_of(code)))
                              : "unknown";
}
const char* lev_last_message(void) {
  return lev::last_c_message;
}

lev_argument lev_value(const void* bytes, size_t size) {
  lev_argument a{};
  a.rows = 1;
  a.what = LEV_VALUE;
  a.unit_bytes = static_cast<uint16_t>(size > 0xffff ? 0xffff : size);
  unsigned char place[lev::value_bytes_max] = {};
  if (size <= sizeof place && bytes != nullptr) std::memcpy(place, bytes, size);
  std::memcpy(&a.address, place, 8);
  std::memcpy(&a.row_bytes, place + 8, 8);
  return a;
}

lev_argument lev_memory(lev_kind kind, const void* address, size_t element_bytes, size_t count) {
  const auto bytes = static_cast<ptrdiff_t>(bytes_of(element_bytes, count));
  lev_argument a = lev_strided(kind, address, element_bytes, 1, count, bytes);
  a.flags = 0;
  return a;
}

lev_argument lev_strided(lev_kind kind, const void* address, size_t element_bytes, size_t rows,
                         size_t row_count, ptrdiff_t stride_bytes) {
  lev_argument a{};
  a.address = reinterpret_cast<uintptr_t>(address);
  a.row_bytes = bytes_of(element_bytes, row_count);
  a.stride_bytes = stride_bytes;
  a.rows = static_cast<uint32_t>(rows > 0xffffffffu ? 0xffffffffu : rows);
  a.unit_bytes = static_cast<uint16_t>(element_bytes > 0xffff ? 0 : element_bytes);
  a.what = is_up_to(kind, LEV_RANGE) ? static_cast<uint8_t>(number_of(kind)) : 0;
  a.flags = LEV_ROWS;
  return a;
}

lev_argument lev_each(lev_kind kind, const void* address, size_t element_bytes, size_t count,
                      ptrdiff_t stride_bytes) {
  lev_argument a = lev_memory(kind, address, element_bytes, count);
  // The submit refuses a value of so many bytes, where none at all would be one of 0 bytes, and
  // several rows: the bytes in a row are no part of a value.
  if (a.what == LEV_VALUE) {
    if (element_bytes > 0xffff) a.unit_bytes = 0xffff;
    a.rows = static_cast<uint32_t>(count > 0xffffffffu ? 0xffffffffu : count);
  }
  a.stride_bytes = stride_bytes;
  a.flags = LEV_EACH;
  return a;
}

lev_status lev_register(const char* name, lev_body body, void* context, const lev_kind* kinds,
                        unsigned count, lev_procedure_id* id) {
  lev::kind converted[LEV_ARGUMENTS_MAX];
  if (count > LEV_ARGUMENTS_MAX)
    return fail(lev::status::bad_argument_count, "lev_register: more than 18 arguments");
  if (count != 0 && kinds == nullptr)
    return bad_argument("lev_register: kinds is NULL, count is not 0");
  for (unsigned i = 0; i < count; ++i) {
    const bool is_known = is_up_to(kinds[i], LEV_RANGE);  // 257 is no LEV_VALUE
    converted[i] = static_cast<lev::kind>(is_known ? number_of(kinds[i]) : 0);
  }
  lev::procedure_info info;
  info.name = name;
  // Lives as long as the table of procedures: for ever.
  auto* procedure = body == nullptr ? nullptr : new (std::nothrow) c_procedure{body, context};
  info.run = procedure == nullptr ? nullptr : &run_c;
  info.context = procedure;
  if (procedure != nullptr && make_portable(*procedure)) info.portable = &procedure->portable;
  info.kinds = converted;
  info.kind_count = count;
  const lev::status code = lev::register_procedure(info, id);
  if (code == lev::status::ok) return LEV_OK;
  delete procedure;
  char message[256];
  std::snprintf(message, sizeof message, "lev_register: %s", lev::refusal_text(info, code));
  return fail(code, message);
}

lev_procedure_id lev_lookup(const char* name) {
  return lev::lookup(name);
}

lev_status lev_open(const lev_options* options, lev_runtime** runtime) {
  if (runtime == nullptr) return bad_argument("lev_open: runtime must not be NULL");
  *runtime = nullptr;
  const lev_status code = guarded([&] {
    lev::config c;
    if (options != nullptr) {
      if (options->machine != nullptr) c.machine = options->machine;
      c.workers = options->workers;
      if (options->tickets != 0) c.tickets = options->tickets;
      c.trace_events = options->trace_events;
      if (options->local_store_bytes != 0) c.local_store_bytes = options->local_store_bytes;
      if (options->seed != 0) c.seed = options->seed;
      c.sim_machine = options->sim_machine;
      c.contexts = options->contexts;
      if (options->context_stack_bytes != 0) c.context_stack_bytes = options->context_stack_bytes;
      if (!is_up_to(options->staging, LEV_STAGING_COPY) ||
          !is_up_to(options->wait, LEV_WAIT_DIRECTED) || !is_up_to(options->full, LEV_FULL_FAIL)) {
        return fail(lev::status::bad_config,
                    "lev_open: options.staging and full are 0, 1 or 2, wait is 0 to 4; "
                    "zero-initialise them");
      }
      c.staging = static_cast<lev::staging>(options->staging);
      c.wait = static_cast<lev::wait_policy>(options->wait);
      c.full = static_cast<lev::when_full>(options->full);
      if (!set_limits(*options, &c)) {
        return fail(lev::status::bad_config,
                    "lev_open: options.isolation is 0 or 1; zero-initialise it");
      }
    }
    *runtime = new lev_runtime(c);
    return LEV_OK;
  });
  if (code != LEV_OK) lev::flatten_names(lev::last_c_message);
  return code;
}

lev_status lev_close(lev_runtime* runtime) {
  if (runtime == nullptr) return LEV_OK;
  const lev::status code = runtime->runtime.close();
  if (code != lev::status::ok) {
    return fail(
        code,
        "lev_close: not inside a task, a callback or a hook; on machine sim also: its tasks "
        "wait for each other and never end");
  }
  delete runtime;
  return LEV_OK;
}

lev_status lev_submit(lev_runtime* runtime, lev_procedure_id procedure,
                      const lev_argument* arguments, unsigned count, lev_ticket* ticket) {
  if (const lev_status s = check_given("lev_submit", runtime, ticket, arguments, count);
      s != LEV_OK)
    return s;
  return submit(runtime, procedure, arguments, count, nullptr, ticket);
}

lev_status lev_post(lev_runtime* runtime, lev_procedure_id procedure, const lev_argument* arguments,
                    unsigned count) {
  if (runtime == nullptr) return bad_argument("lev_post: runtime must not be NULL");
  if (const lev_status s = check_arguments("lev_post", arguments, count); s != LEV_OK) return s;
  return submit(runtime, procedure, arguments, count, nullptr, nullptr);
}

lev_status lev_submit_bulk(lev_runtime* runtime, size_t tasks, lev_procedure_id procedure,
                           const lev_argument* arguments, unsigned count, lev_ticket* ticket) {
  if (const lev_status s = check_given("lev_submit_bulk", runtime, ticket, arguments, count);
      s != LEV_OK)
    return s;
  return lev::guarded([&] {
    *ticket = lev::detail::submit_columns(runtime->runtime.state(), tasks,
                                          draft_of(procedure, arguments, count));
  });
}

lev_status lev_submit_after(lev_runtime* runtime, lev_procedure_id procedure,
                            const lev_argument* arguments, unsigned count, const lev_ticket* after,
                            unsigned after_count, lev_ticket* ticket) {
  lev_task_options options = {};
  options.after = after;
  options.after_count = after_count;
  return submit_with("lev_submit_after", runtime, procedure, arguments, count, options, ticket);
}

lev_status lev_submit_with(lev_runtime* runtime, lev_procedure_id procedure,
                           const lev_argument* arguments, unsigned count,
                           const lev_task_options* options, lev_ticket* ticket) {
  constexpr const char* call = "lev_submit_with";
  if (options != nullptr)
    return submit_with(call, runtime, procedure, arguments, count, *options, ticket);
  if (const lev_status s = check_given(call, runtime, ticket, arguments, count); s != LEV_OK)
    return s;
  return submit(runtime, procedure, arguments, count, nullptr, ticket);
}

lev_status lev_wait(lev_runtime* runtime, lev_ticket ticket, int64_t timeout_ns,
                    lev_outcome* outcome) {
  return wait_by("lev_wait", runtime, ticket, timeout_ns, LEV_WAIT_OF_RUNTIME, outcome);
}

lev_status lev_wait_by(lev_runtime* runtime, lev_ticket ticket, int64_t timeout_ns,
                       lev_wait_policy how, lev_outcome* outcome) {
  return wait_by("lev_wait_by", runtime, ticket, timeout_ns, how, outcome);
}

lev_status lev_wait_any(lev_runtime* runtime, lev_ticket* tickets, size_t count, int64_t timeout_ns,
                        size_t* index, lev_outcome* outcome) {
  return wait_any_by("lev_wait_any", runtime, tickets, count, timeout_ns, LEV_WAIT_OF_RUNTIME,
                     index, outcome);
}

lev_status lev_wait_any_by(lev_runtime* runtime, lev_ticket* tickets, size_t count,
                           int64_t timeout_ns, lev_wait_policy how, size_t* index,
                           lev_outcome* outcome) {
  return wait_any_by("lev_wait_any_by", runtime, tickets, count, timeout_ns, how, index, outcome);
}

lev_status lev_wait_for_completion(lev_runtime* runtime, int64_t timeout_ns) {
  if (runtime == nullptr) return bad_argument("lev_wait_for_completion: runtime must not be NULL");
  return report(runtime->runtime.wait_for_completion(timeout_ns), nullptr);
}

lev_status lev_poll(lev_runtime* runtime, lev_ticket ticket) {
  if (runtime == nullptr) return bad_argument("lev_poll: runtime must not be NULL");
  return answer(lev::detail::peek(runtime->runtime.state(), ticket));
}
lev_status lev_cancel(lev_runtime* runtime, lev_ticket ticket) {
  if (runtime == nullptr) return bad_argument("lev_cancel: runtime must not be NULL");
  return answer(lev::detail::cancel(runtime->runtime.state(), ticket));
}
lev_status lev_end(lev_runtime* runtime, lev_ticket ticket) {
  if (runtime == nullptr) return bad_argument("lev_end: runtime must not be NULL");
  return answer(lev::detail::end(runtime->runtime.state(), ticket));
}
void lev_release(lev_runtime* runtime, lev_ticket ticket) {
  if (runtime != nullptr) lev::detail::release(runtime->runtime.state(), ticket);
}

lev_status lev_count(const lev_runtime* runtime, lev_counters* counters) {
  if (runtime == nullptr || counters == nullptr)
    return bad_argument("lev_count: runtime and counters must not be NULL");
  const lev::counters all = runtime->runtime.count();
  std::memcpy(counters, &all, sizeof all);
  return LEV_OK;
}

lev_status lev_write_trace(const lev_runtime* runtime, const char* path) {
  if (runtime == nullptr || path == nullptr)
    return bad_argument("lev_write_trace: runtime and path must not be NULL");
  const lev::status code = runtime->runtime.write_trace(path);
  if (code == lev::status::ok) return LEV_OK;
  return fail(code, code == lev::status::not_supported
                        ? "lev_write_trace: nothing was traced; set options.trace_events"
                        : "lev_write_trace: the file cannot be written; check its folder");
}

void* lev_shared_allocate(size_t bytes) {
  void* block = lev::shared_allocate(bytes);
  if (block == nullptr) fail(lev::status::out_of_memory, lev::shared_shortage());
  return block;
}
void lev_shared_free(void* block) {
  lev::shared_free(block);
}
int lev_is_shared(const void* data, size_t bytes) {
  return lev::is_shared(data, bytes) ? 1 : 0;
}

lev_status lev_interleave(unsigned n, size_t count, lev_item item, void* argument) {
  if (item == nullptr) return bad_argument("lev_interleave: item must not be NULL");
  bool has_thrown = false;
  const lev_status s = guarded([&] {
    const c_item body{item, argument, &has_thrown};
    if (n == LEV_STRANDS_AUTOMATIC) {
      lev::detail::interleave_automatic(tuner_of(item), count, body);
    } else {
      lev::interleave(n, count, body);
    }
  });
  return has_thrown ? LEV_TASK_FAILED : s;  // the exception is no refusal, whatever it says
}

}  // extern "C"
