// Tasks of the papers' rows as tasks of Leveret; see pipeline.hpp.
#include "leveret/pipeline.hpp"

#include <stdexcept>

namespace leveret_papers {

namespace {

// What the pieces of a diced task take: a cost hook is given the task alone.
thread_local const std::vector<std::int64_t>* sums_of_pieces = nullptr;
thread_local std::int64_t cost_of_a_task = 0;

void run_task(std::uint64_t, lev::in<char>, lev::in<char>, lev::out<char>, lev::inout<char>) {}
std::uint64_t cost_of_task(const lev::descriptor& t) {
  return t.arguments[0].address;
}

void run_pieces(lev::range, lev::out<char>) {}
std::uint64_t cost_of_pieces(const lev::descriptor& t) {
  const std::vector<std::int64_t>& before = *sums_of_pieces;
  const std::uint64_t begin = t.arguments[0].address;
  const std::uint64_t end = t.arguments[0].row_bytes;
  return static_cast<std::uint64_t>(before[end] - before[begin] + cost_of_a_task);
}

const auto task_procedure = lev::define("papers_task", &run_task, nullptr, &cost_of_task);
const auto pieces_procedure = lev::define("papers_pieces", &run_pieces, nullptr, &cost_of_pieces);

lev::config config_of(const pipeline_set_up& what) {
  lev::config c;
  c.machine = "sim";
  c.sim_machine = what.machine;
  c.workers = static_cast<int>(what.workers);
  c.staging = lev::staging::copy;
  c.depth = what.depth;
  return c;
}

// Lines that another core wrote last, and instructions.
cycles price(world& w, const pipeline_set_up& what, const char* lines, const char* of_line) {
  const double each = w.constant(w.file(what.machine), of_line);
  const double own = w.number("leveret.instructions") * w.number("leveret.instruction");
  return cycles(static_cast<std::int64_t>((w.number(lines) * each + own) * w.own_work()));
}

void check(const lev::outcome& o) {
  if (o.code != lev::status::ok) throw std::runtime_error("a task of a paper's row failed");
}

lev::memory<char> view_of(std::span<char> bytes) {
  return lev::view(bytes.data(), bytes.size());
}

}  // namespace

pipeline::pipeline(world& w, const pipeline_set_up& what)
    : world_(w),
      of_host_(price(w, what, "leveret.submit_lines", "ppe.missed_load")),
      of_worker_(price(w, what, "leveret.task_lines", "atomic.remote")),
      runtime_(config_of(what)) {}

lev::descriptor pipeline::draft(const pipeline_task& t) const {
  const auto is = [](std::span<char> a, std::span<char> b) {
    return a.data() == b.data() && a.size() == b.size() && !a.empty();
  };
  const bool changes_first = is(t.first, t.written);
  const bool changes_second = is(t.second, t.written);
  const bool changes = changes_first || changes_second;
  return lev::pack(task_procedure, static_cast<std::uint64_t>((cycles(t.work) + of_worker_).count),
                   view_of(changes_first ? std::span<char>{} : t.first),
                   view_of(changes_second ? std::span<char>{} : t.second),
                   view_of(changes ? std::span<char>{} : t.written),
                   view_of(changes ? t.written : std::span<char>{}));
}

void pipeline::post(const pipeline_task& t) {
  pass(of_host_);
  runtime_.post(draft(t));
}
lev::ticket pipeline::submit(const pipeline_task& t) {
  pass(of_host_);
  return runtime_.submit(draft(t));
}

void pipeline::post_pieces(const std::vector<std::int64_t>& before, std::uint32_t first,
                           std::uint32_t count, std::span<char> rows) {
  sums_of_pieces = &before;
  cost_of_a_task = of_worker_.count;
  const std::size_t each = rows.size() / count;
  auto written = lev::strided(rows.data(), count, each, static_cast<std::ptrdiff_t>(each));
  written.is_sliced = true;
  pass(of_host_);
  runtime_.post(pieces_procedure, lev::range{first, first + count}, written);
}

std::size_t pipeline::wait_any(std::span<lev::ticket> open) {
  std::size_t which = 0;
  check(lev::wait_any(open.data(), open.size(), &which));
  return which;
}

void pipeline::finish() {
  check(runtime_.wait_for_completion());
}

}  // namespace leveret_papers
