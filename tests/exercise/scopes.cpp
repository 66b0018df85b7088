// Steps about scopes of ordered tasks, and what must have become of their fields: see scopes.hpp.
#include "exercise/scopes.hpp"

#include "base/random.hpp"
#include "exercise/bodies.hpp"

#include <leveret/leveret.h>

#include <cstring>
#include <memory>
#include <string>

namespace lev::exercise {

std::uint8_t first_field_byte(std::uint32_t field, std::uint32_t at) noexcept {
  return static_cast<std::uint8_t>(mix64(field * 1'000 + at));
}

std::uint64_t field_step(std::uint32_t task, const task_spec& spec, const field_bytes& input,
                         field_bytes& own) noexcept {
  std::uint64_t sum = mix64(task);
  for (unsigned i = 0; i < input.count; ++i) sum = mix64(sum ^ input.at[i]);
  for (unsigned i = 0; i < own.count && spec.own.what == kind::inout; ++i)
    sum = mix64(sum ^ own.at[i]);
  for (unsigned i = 0; i < own.count; ++i) own.at[i] = static_cast<std::uint8_t>(mix64(sum + i));
  return mix64(~sum);
}

std::uint64_t bits_of(const field_block& b) noexcept {
  std::uint64_t bits = 0;
  for (unsigned row = b.row; row < unsigned{b.row} + b.rows; ++row) {
    const std::uint64_t in_row = ~std::uint64_t{0} >> (64 - b.bytes);
    bits |= in_row << (row * field_row_bytes + b.byte);
  }
  return bits;
}

namespace {

// The C API sees the same scope (src/runtime/c_ordered.cpp).
lev_ordered* scope_in_c(scope_state& scope) {
  return reinterpret_cast<lev_ordered*>(scope.tasks.get());
}

scope_state& scope_at(const frame& f, const step& s) {
  scope_state& scope = f.w.scopes[s.b];
  if (scope.tasks != nullptr) return scope;
  lev_ordered* made = nullptr;
  if (s.in_c && lev_ordered_open(in_c(f.w), &made) == LEV_OK)
    scope.tasks.reset(reinterpret_cast<lev::ordered*>(made));
  else
    scope.tasks = std::make_unique<lev::ordered>(*f.w.home);
  return scope;
}

// Of the tasks that no wait has told of, those that it must follow.
std::uint64_t inferred(const world& w, const scope_state& scope, std::uint32_t task) {
  const field_use own = use_of(w.plan.tasks[task]);
  std::uint64_t all = 0;
  for (std::size_t i = scope.first; i < scope.members.size(); ++i) {
    const std::uint32_t other = scope.members[i];
    if (do_conflict(own, use_of(w.plan.tasks[other]))) all |= std::uint64_t{1} << other;
  }
  return all;
}

status submit_ordered(const frame& f, scope_state& scope, std::uint32_t task, const step& s,
                      const options& o, std::uint64_t* id) {
  const descriptor d = describe(f.w, task, 0);
  if (s.in_c) {
    lev_task_options options{};
    options.priority = s.priority;
    options.key = s.key;
    options.grain = s.grain;
    options.max_attempts = s.attempts;
    return static_cast<status>(lev_ordered_submit(
        scope_in_c(scope), d.procedure, reinterpret_cast<const lev_argument*>(d.arguments),
        d.argument_count, &options, id));
  }
  try {
    *id = scope.tasks->submit_id(d, &o);
    return status::ok;
  } catch (const error& e) {
    return e.code();
  }
}

}  // namespace

field_use use_of(const task_spec& spec) noexcept {
  field_use use;
  if (spec.field == nobody) return use;
  if (spec.has_input) use.reads |= bits_of(spec.field_input);
  if (spec.own.what != kind::value) use.writes |= bits_of(spec.field_own);
  if (spec.own.what == kind::inout) use.reads |= bits_of(spec.field_own);
  if (spec.has_result) use.writes |= bits_of(row_block(spec.field_result_row));
  return use;
}

void do_ordered(const frame& f, const step& s) {
  world& w = f.w;
  scope_state& scope = scope_at(f, s);
  sighting& seen = w.seen[s.a];
  record& r = w.shared->tasks[s.a];
  seen.depth = f.depth;
  seen.is_child = f.task != nobody && !f.is_callback;
  seen.is_ordered = true;
  const options o = options_of(f, s.a, s);
  r.after |= inferred(w, scope, s.a);
  // Empty tasks stand for those that are more than a task can name.
  const auto edges = static_cast<std::uint32_t>(__builtin_popcountll(r.after));
  const std::uint32_t slots = 1 + edges / (options::after_max - 1);
  w.edges_named.fetch_add(edges + slots);
  count_live(w, slots);
  std::uint64_t id = 0;
  const status code = submit_ordered(f, scope, s.a, s, o, &id);
  seen.is_submitted = code == status::ok;
  if (code == status::ok) {
    seen.id.store(id);
    scope.slots += slots;
    scope.members.push_back(s.a);
    return;
  }
  // It waits where there is no ticket.
  const bool may_be = may_be_full(w) && may_refuse_wait(f, code, no_timeout);
  refused(f, s.a, may_be ? status::would_block : code, may_be_full(w));
  w.live.fetch_sub(slots);
}

namespace {

outcome wait_for(scope_state& scope, const step& s) {
  if (!s.in_c) return scope.tasks->wait_outcome(s.timeout_ns);
  lev_outcome out{};
  lev_ordered_wait(scope_in_c(scope), s.timeout_ns, &out);
  return from_c(out);
}

// The first that failed, in the order of the submits, is the one that is told.
void check_first(world& w, std::uint32_t task, const outcome& o) {
  const task_spec& spec = w.plan.tasks[task];
  if (w.shared->tasks[task].ended.load() == 0) return;
  if (spec.end == ending::code && o.task_code != static_cast<int>(task) + 1)
    w.blame("a wait for a scope does not tell what " + task_name(task) + " returned");
  if (spec.end != ending::throws) return;
  try {
    if (!o.exception) return w.blame("a wait for a scope tells no exception");
    std::rethrow_exception(o.exception);
  } catch (const std::exception& e) {
    if (e.what() != "task " + std::to_string(task))
      w.blame("a wait for a scope tells of \"" + std::string(e.what()) + "\", not of " +
              task_name(task));
  }
}

// Every task that has not ended with ok is a failure, also one that did not run, and so is every
// piece of one that was cut.
void check_batch(world& w, const scope_state& scope, const outcome& o) {
  std::uint32_t failed = 0;
  std::uint32_t first = nobody;
  bool is_known = w.plan.config.chaos == 0 && !w.plan.config.is_confined && !w.is_cancelling.load();
  bool has_pieces = false;
  for (std::size_t i = scope.first; i < scope.members.size(); ++i) {
    const std::uint32_t task = scope.members[i];
    is_known &= !w.may_be_ended(task);
    if (w.fate_of(task, 0) == world::fate::ended_well) continue;
    if (failed++ == 0) first = task;
    has_pieces |= w.plan.tasks[task].what == shape::sliced;
  }
  if (!is_known) return;
  const bool is_right = has_pieces ? o.failures >= failed : o.failures == failed;
  if (!is_right || (o.code == status::ok) != (failed == 0)) {
    return w.blame("a wait for a scope ended with " + std::string(status_name(o.code)) + " and " +
                   std::to_string(o.failures) + " failures, where " + std::to_string(failed) +
                   " tasks did not end with ok");
  }
  if (failed != 0) check_first(w, first, o);
}

}  // namespace

void do_wait_ordered(const frame& f, const step& s) {
  scope_state& scope = f.w.scopes[s.b];
  if (scope.tasks == nullptr) return;
  const outcome o = wait_for(scope, s);
  if (ticket::consumes(o.code)) {
    check_batch(f.w, scope, o);
    scope.first = scope.members.size();
  } else if (!may_refuse_wait(f, o.code, s.timeout_ns)) {
    f.w.blame("a wait for a scope, at depth " + std::to_string(f.depth) + ", ended with " +
              status_name(o.code));
  }
}

void do_cancel_ordered(const frame& f, const step& s) {
  sighting& seen = f.w.seen[s.a];
  if (seen.id.load() == 0) return;  // it was refused, or does not run
  seen.cancel_asked.store(true);
  const auto code = static_cast<status>(lev_cancel(in_c(f.w), seen.id.load()));
  if (code != status::ok && code != status::stale_ticket)
    f.w.blame(task_name(s.a) + ": cancel of a scope's ticket ended with " + status_name(code));
}

void close_scopes(const frame& f, const block& steps) {
  for (const step& s : steps) {
    if (s.what != verb::ordered) continue;
    scope_state& scope = f.w.scopes[s.b];
    if (s.in_c)
      lev_ordered_close(reinterpret_cast<lev_ordered*>(scope.tasks.release()));
    else
      scope.tasks.reset();
    f.w.live.fetch_sub(scope.slots);
    scope.slots = 0;
  }
}

namespace {

struct field_copy {
  std::uint8_t at[field_rows * field_row_bytes];

  template <class What>
  void each(const field_block& b, What&& what) {
    unsigned n = 0;
    for (unsigned row = b.row; row < unsigned{b.row} + b.rows; ++row) {
      for (unsigned i = b.byte; i < unsigned{b.byte} + b.bytes; ++i)
        what(at[row * field_row_bytes + i], n++);
    }
  }
  field_bytes read(const field_block& b) {
    field_bytes bytes;
    each(b, [&](std::uint8_t byte, unsigned n) { bytes.at[n] = byte; });
    bytes.count = unsigned{b.rows} * b.bytes;
    return bytes;
  }
  void run(std::uint32_t task, const task_spec& spec) {
    const bool has_own = spec.own.what != kind::value;
    const field_bytes input = spec.has_input ? read(spec.field_input) : field_bytes();
    field_bytes own = has_own ? read(spec.field_own) : field_bytes();
    const std::uint64_t word = field_step(task, spec, input, own);
    if (has_own) each(spec.field_own, [&](std::uint8_t& byte, unsigned n) { byte = own.at[n]; });
    if (spec.has_result) std::memcpy(at + spec.field_result_row * field_row_bytes, &word, 8);
  }
};

}  // namespace

void check_scopes(world& w) {
  for (std::uint32_t n = 0; n < scopes_max; ++n) {
    const scope_state& scope = w.scopes[n];
    bool is_known =
        scope.field != nullptr && w.plan.config.chaos == 0 && !w.plan.config.is_confined;
    for (const std::uint32_t task : scope.members) is_known &= !w.may_be_ended(task);
    if (!is_known) continue;
    field_copy wanted;
    for (std::uint32_t i = 0; i < sizeof wanted.at; ++i) wanted.at[i] = first_field_byte(n, i);
    for (const std::uint32_t task : scope.members) {
      const task_spec& spec = w.plan.tasks[task];
      if (spec.field != nobody && w.fate_of(task, 0) == world::fate::ended_well)
        wanted.run(task, spec);
    }
    if (std::memcmp(wanted.at, scope.field, sizeof wanted.at) != 0)
      w.blame("the field of a scope is not what a serial run leaves, scope " + std::to_string(n));
  }
}

}  // namespace lev::exercise
