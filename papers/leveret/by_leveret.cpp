// The papers' tasks on Leveret's pipeline, and which rows that answers; see by_leveret.hpp.
#include "leveret/by_leveret.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "leveret/pipeline.hpp"

namespace leveret_papers {

namespace {

std::span<char> bytes_at(cell::machine& m, const rabbit_bytes& where) {
  if (where.bytes == 0) return {};
  return {static_cast<char*>(m.host(where.ea)), where.bytes};
}

pipeline_task task_of(cell::machine& m, const rabbit_task& t) {
  return {t.work, bytes_at(m, t.in[0]), bytes_at(m, t.in[1]), bytes_at(m, t.out)};
}

std::vector<std::int64_t> sums_of(const std::vector<std::int64_t>& pieces) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t work : pieces) sums.push_back(sums.back() + work);
  return sums;
}

// Room for what tasks of several pieces write.
std::vector<char> rows_of(const std::vector<rabbit_batch>& batches) {
  std::size_t bytes = 0;
  for (const rabbit_batch& b : batches)
    for (const rabbit_task& t : b.tasks)
      if (t.count > 1) bytes = std::max(bytes, (std::size_t{t.first} + t.count) * t.out.bytes);
  return std::vector<char>(bytes);
}

}  // namespace

rabbit_outcome run_rabbit_by_leveret(world& w, const rabbit_pool& what,
                                     const rabbit_batches& make) {
  cell::machine m(w.file("cell-ps3"));  // where the batches' data is; nothing runs there
  const std::vector<rabbit_batch> batches = make(m);
  const std::vector<std::int64_t> before = sums_of(what.pieces);
  std::vector<char> rows = rows_of(batches);
  pipeline by(w, {"cell-ps3", what.spes, what.is_double_buffered ? 2u : 1u});
  rabbit_outcome out;
  for (const rabbit_batch& b : batches) {
    const double begin = by.seconds();
    by.pass(cycles(b.serial));
    for (const rabbit_task& t : b.tasks) {
      // Each piece writes as much, to a place of its own.
      const auto written = [&] {
        return std::span(rows).subspan(std::size_t{t.first} * t.out.bytes,
                                       std::size_t{t.count} * t.out.bytes);
      };
      if (!what.pieces.empty())
        by.post_pieces(before, t.first, t.count, written());
      else if (t.count > 1)
        by.post({t.work, {}, {}, written()});
      else
        by.post(task_of(m, t));
    }
    by.finish();
    out.seconds.push_back(by.seconds() - begin);
    out.executed += b.tasks.size();
  }
  return out;
}

tpc_outcome run_tpc_by_leveret(world& w, const tpc_calls& what) {
  std::vector<tpc_step> steps = what.steps;
  if (steps.empty())
    steps = {{what.tasks, what.arguments, what.bytes_in, what.bytes_out, what.work}};
  std::size_t most = 0;
  for (const tpc_step& s : steps) most = std::max<std::size_t>({most, s.bytes_in, s.bytes_out});
  std::vector<char> memory(most);
  pipeline by(w, {"cell-ps3", what.spes, what.queue});
  const double begin = by.seconds();
  double bytes = 0;
  double tasks = 0;
  for (const tpc_step& s : steps) {
    // What is put back is what was got, as much of it; more than that has a place of its own.
    const std::uint32_t both = std::min(s.bytes_in, s.bytes_out);
    const std::span<char> all(memory);
    pipeline_task t{s.work, all.first(s.bytes_in - both), all.last(both), all.last(s.bytes_out)};
    if (both < s.bytes_out) t.second = {};
    by.pass(cycles(s.serial));
    for (std::uint32_t i = 0; i < s.tasks; ++i) by.post(t);
    by.finish();
    bytes += double(s.bytes_in + s.bytes_out) * s.tasks;
    tasks += s.tasks;
  }
  tpc_outcome out;
  out.seconds = by.seconds() - begin;
  out.cycles_each = out.seconds * w.constant(w.file("cell-ps3"), "clock.rate") / tasks;
  out.bytes_per_second = bytes / out.seconds;
  return out;
}

double us_of_a_job_by_leveret(world& w, const gcell_jobs& what) {
  constexpr unsigned in_flight = 64;
  const double rate = w.constant(w.file(what.machine), "clock.rate");
  const auto work =
      static_cast<std::int64_t>(what.delay_us * w.number("gcell.delay") * 1e-6 * rate);
  pipeline by(w, {what.machine, what.spes, 2});
  const double begin = by.seconds();
  std::array<lev::ticket, in_flight> open;
  unsigned submitted = 0;
  for (lev::ticket& each : open)
    if (submitted++ < what.jobs) each = by.submit({work});
  for (unsigned ended = 0; ended < what.jobs; ++ended) {
    const std::size_t which = by.wait_any(open);
    if (submitted++ < what.jobs) open[which] = by.submit({work});
  }
  return (by.seconds() - begin) * 1e6 / what.jobs;
}

}  // namespace leveret_papers
