// Programs on confined workers. Their bodies cannot write down what they see: nothing of the host
// is theirs to write, but the outputs of a task. A body keeps its record for itself, and throws
// what it has found; what it has done follows from its task's outcome and outputs.
#include "exercise/bodies.hpp"
#include "exercise/interpret.hpp"

#include <string>

namespace lev::exercise {

record& private_record(const record& of) {
  static record own;
  own.begun.store(0);
  own.what.store(0);
  for (auto& n : own.piece_runs) n.store(0);
  for (auto& n : own.piece_good) n.store(0);
  own.spec = of.spec;
  own.input_shape = of.input_shape;
  return own;
}

std::string finding_in(const record& r) {
  if (r.what.load() == 0) return "";
  return std::string(fault_text(static_cast<fault>(r.what.load()))) + " (" +
         std::to_string(r.detail.load()) + ")";
}

namespace {

void note_good(record& r, std::uint32_t piece) {
  r.piece_runs[piece].store(1);
  r.piece_good[piece].store(1);
}

// An element is done if its first word is another one.
void note_elements_done(record& r, std::uint32_t task) {
  const memory_spec& own = r.spec.own;
  std::uint32_t done = 0;
  for (std::uint32_t i = 0; i < r.spec.pieces; ++i) {
    const std::uint64_t word = own.rows == 1 ? r.own[i] : r.own[i * (own.words + own.gap)];
    const std::uint32_t at = own.rows == 1 ? i : i * own.words;
    if (word == make_word(word_kind::before, task, at)) continue;
    note_good(r, i);
    ++done;
  }
  r.items.store(done);
}

}  // namespace

void settle(world& w, std::uint32_t task, status code) {
  record& r = w.shared->tasks[task];
  const task_spec& spec = r.spec;
  if (!w.plan.config.is_confined || code == status::pending) return;
  w.seen[task].is_settled = code == status::ok || spec.what != shape::bulk;
  if (code == status::dependency_failed) w.seen[task].is_settled = true;
  if (code == status::dependency_failed || code == status::cancelled) {
    if (spec.what == shape::sliced) note_elements_done(r, task);
    r.begun.store(r.items.load());
    return;
  }
  const std::uint32_t pieces = spec.what == shape::bulk ? spec.pieces : 1;
  r.begun.store(pieces);
  if (spec.what == shape::sliced) note_elements_done(r, task);
  if (code == status::ok) {
    r.ended.store(pieces);
    r.good.store(pieces);
    for (std::uint32_t i = 0; i < pieces && spec.what != shape::sliced; ++i) note_good(r, i);
  }
}

}  // namespace lev::exercise
