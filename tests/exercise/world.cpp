// The memory of a program and what must be in it: see world.hpp.
#include "exercise/world.hpp"

#include "base/random.hpp"
#include "exercise/scopes.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace lev::exercise {

namespace {
constexpr std::uint32_t guard_words = 8;
}

std::uint64_t make_word(word_kind k, std::uint32_t task, std::uint32_t at) noexcept {
  const auto kind = static_cast<std::uint64_t>(k);
  const std::uint64_t hash = mix64(kind << 40 ^ std::uint64_t{task} << 20 ^ at) & 0xff'ffff'ffff;
  return word_mark << 56 | kind << 52 | (std::uint64_t{task} & 0xfff) << 40 | hash;
}

const char* fault_text(fault f) noexcept {
  switch (f) {
    case fault::none:
      return "nothing";
    case fault::ran_twice:
      return "ran more often than once";
    case fault::too_early:
      return "began before a task named in after() had ended with ok";
    case fault::beside_holder:
      return "ran beside another holder of its mutex";
    case fault::wrong_input:
      return "found wrong bytes in its input";
    case fault::wrong_initial:
      return "found other bytes in its inout argument or result than its "
             "caller had there";
    case fault::flag_never_set:
      return "waited long for a task that any idle worker could have run";
    case fault::wrong_range:
      return "got a piece that is no part of the whole";
    case fault::body_gone:
      return "has a piece that ran when parallel_for() had returned";
    case fault::left_early:
      return "left its body early";
  }
  return "?";
}

world::world(const program& p) : plan(p) {
  const std::size_t bytes = sizeof(board);
  const bool is_remote = !is_local(p.config.machine);
  void* place = is_remote ? shared_allocate(bytes) : ::operator new(bytes);
  if (place == nullptr) throw std::bad_alloc();
  shared = new (place) board;
  shared->is_remote = is_remote;
  shared->is_confined = p.config.is_confined;
  shared->home = this;
  make_fields();
  for (std::uint32_t t = 0; t < p.tasks.size(); ++t) make_memory(t);
  for (const task_spec& t : p.tasks) is_sliced |= t.what == shape::sliced;
}

world::~world() {
  for (const cell& c : cells_) {
    if (c.is_shared)
      shared_free(c.first);
    else
      delete[] c.first;
  }
  if (shared->is_remote != 0)
    shared_free(shared);
  else
    ::operator delete(shared);
}

std::uint64_t* world::make_cell(std::uint32_t words, bool is_shared) {
  const std::uint32_t all = words + 2 * guard_words;
  auto* first =
      is_shared ? static_cast<std::uint64_t*>(shared_allocate(all * 8)) : new std::uint64_t[all];
  if (first == nullptr) throw std::bad_alloc();
  const auto id = static_cast<std::uint32_t>(cells_.size());
  for (std::uint32_t i = 0; i < all; ++i) first[i] = make_word(word_kind::guard, id, i);
  cells_.push_back({first, words, is_shared});
  return first + guard_words;
}

// Fills the rows of `shape` at `place`.
static void fill(std::uint64_t* place, const memory_spec& shape, word_kind k, std::uint32_t task) {
  for (std::uint32_t r = 0; r < shape.rows; ++r) {
    for (std::uint32_t i = 0; i < shape.words; ++i)
      place[r * (shape.words + shape.gap) + i] = make_word(k, task, r * shape.words + i);
  }
}

void world::make_fields() {
  for (const task_spec& spec : plan.tasks) {
    if (spec.field == nobody || scopes[spec.field].field != nullptr) continue;
    const bool is_shared = shared->is_remote != 0 && is_field_shared(spec.field);
    std::uint64_t* const words = make_cell(field_rows * field_row_bytes / 8, is_shared);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(words);
    for (std::uint32_t i = 0; i < field_rows * field_row_bytes; ++i)
      bytes[i] = first_field_byte(spec.field, i);
    scopes[spec.field].field = bytes;
  }
}

void world::make_memory(std::uint32_t task) {
  const task_spec& spec = plan.tasks[task];
  record& r = shared->tasks[task];
  r.spec = spec;
  r.changes_inputs = changes_inputs(task);
  if (spec.field != nobody) return;
  const bool in_shared = spec.own.is_shared;
  if (spec.own.what != kind::value) {
    r.own = make_cell(words_of(spec.own), in_shared);
    fill(r.own, spec.own, word_kind::before, task);
  }
  if (spec.has_input && spec.reads != nobody) {
    r.input = shared->tasks[spec.reads].own;
    r.input_shape = plan.tasks[spec.reads].own;
  } else if (spec.has_input) {
    r.input_shape = spec.own;
    r.input = make_cell(words_of(spec.own), in_shared);
    fill(r.input, spec.own, word_kind::input, task);
  }
  if (spec.has_result) {
    const std::uint32_t pieces = spec.what == shape::bulk ? spec.pieces : 1;
    r.result = make_cell(pieces, false);
    for (std::uint32_t row = 0; row < pieces; ++row)
      r.result[row] = result_word(word_kind::before, task, row_of_piece(spec, row));
  }
}

void world::blame(const std::string& text) {
  const std::lock_guard guard(lock_);
  is_blamed_.store(true);
  if (blames_.size() < 12) blames_.push_back(text);
}

void world::keep_alive(std::shared_ptr<void> what) {
  const std::lock_guard guard(lock_);
  kept_.push_back(std::move(what));
}

std::string world::blames() {
  const std::lock_guard guard(lock_);
  std::string all;
  for (const std::string& b : blames_) all += b + "\n";
  return all;
}

// A piece with one row of a sliced argument is contiguous.
bool world::is_strided(std::uint32_t task) const {
  const task_spec& spec = plan.tasks[task];
  return spec.what == shape::plain && spec.own.rows > 1 && spec.own.gap != 0;
}

// Where an argument is copied, a body that failed has changed nothing.
bool world::is_copied(std::uint32_t task) const {
  const task_spec& spec = plan.tasks[task];
  const memory_spec& m = spec.own;
  if (m.is_far) return false;
  if (plan.config.machine == place::sim || plan.config.staging == staging::copy || is_strided(task))
    return true;
  if (is_local(plan.config.machine)) return false;
  return !m.is_shared || plan.config.is_confined ||
         (m.what == kind::inout && !changes_inputs(task));
}

bool world::changes_inputs(std::uint32_t task) const {
  const task_spec& spec = plan.tasks[task];
  const memory_spec& m = spec.own;
  const bool may_be = shared->is_remote != 0 && !plan.config.is_confined &&
                      plan.config.staging == staging::in_place;
  if (!may_be || m.what != kind::inout) return false;
  if (spec.field != nobody) return is_field_shared(spec.field) && is_contiguous(spec.field_own);
  return m.is_shared && !is_strided(task);
}

world::fate world::fate_of(std::uint32_t task, std::uint32_t row) const {
  const task_spec& spec = plan.tasks[task];
  const record& r = shared->tasks[task];
  if (spec.what == shape::bulk) {
    const std::uint32_t piece = row_of_piece(spec, row);
    if (r.piece_runs[piece].load() == 0) return fate::never_began;
    return r.piece_good[piece].load() != 0 && !may_be_ended(task) ? fate::ended_well : fate::other;
  }
  const bool is_whole =
      spec.what == shape::sliced ? r.items.load() == spec.pieces : r.good.load() != 0;
  if (r.begun.load() == 0) return fate::never_began;
  return is_whole && !may_be_ended(task) ? fate::ended_well : fate::other;
}

world::fate world::fate_of_element(std::uint32_t task, std::uint32_t element) const {
  const record& r = shared->tasks[task];
  if (r.begun.load() == 0) return fate::never_began;
  return r.piece_good[element].load() != 0 && !may_be_ended(task) ? fate::ended_well : fate::other;
}

void world::check_own(std::uint32_t task) {
  const task_spec& spec = plan.tasks[task];
  const record& r = shared->tasks[task];
  const bool has_elements = spec.what == shape::sliced;
  for (std::uint32_t i = 0; i < spec.own.rows * spec.own.words; ++i) {
    const std::uint32_t row = i / spec.own.words;
    const std::uint32_t element = spec.own.rows == 1 ? i : row;
    const fate f = has_elements ? fate_of_element(task, element) : fate_of(task, row);
    if (f == fate::other && (!is_copied(task) || may_be_ended(task))) continue;
    const std::uint64_t word = r.own[row * (spec.own.words + spec.own.gap) + i % spec.own.words];
    const std::uint64_t before = make_word(word_kind::before, task, i);
    std::uint64_t wanted = before;
    if (f == fate::ended_well)
      wanted =
          spec.own.what == kind::out ? make_word(word_kind::after, task, i) : word_step(before);
    if (f == fate::ended_well && spec.own.is_left) {
      if (word != before && is_marked(word))
        return blame("task " + std::to_string(task) +
                     ": its unwritten output shows bytes of another");
    } else if (word != wanted) {
      constexpr const char* texts[] = {": did not run, but its output changed, word ",
                                       ": a wrong output, word ",
                                       ": failed, but its output changed, word "};
      return blame("task " + std::to_string(task) + texts[static_cast<unsigned>(f)] +
                   std::to_string(i));
    }
  }
}

void world::check_result(std::uint32_t task) {
  const task_spec& spec = plan.tasks[task];
  const std::uint32_t pieces = spec.what == shape::bulk ? spec.pieces : 1;
  for (std::uint32_t row = 0; row < pieces; ++row) {
    const fate f = fate_of(task, row);
    if (f == fate::other) continue;
    const std::uint32_t piece = spec.what == shape::bulk ? row_of_piece(spec, row) : 0;
    const bool is_assigned = f == fate::ended_well && !spec.leaves_result;
    const word_kind wanted = is_assigned ? word_kind::after : word_kind::before;
    if (shared->tasks[task].result[row] == result_word(wanted, task, piece)) continue;
    return blame("task " + std::to_string(task) + ": its result is " +
                 (is_assigned ? "not what it assigned" : "changed, though it did not assign it"));
  }
}

void world::check_memory() {
  for (std::uint32_t id = 0; id < cells_.size(); ++id) {
    const cell& c = cells_[id];
    for (std::uint32_t i = 0; i < guard_words; ++i) {
      const std::uint32_t end = guard_words + c.words + i;
      if (c.first[i] != make_word(word_kind::guard, id, i) ||
          c.first[end] != make_word(word_kind::guard, id, end))
        blame("memory beside an argument was written, argument " + std::to_string(id));
    }
  }
  for (std::uint32_t t = 0; t < plan.tasks.size(); ++t) {
    const task_spec& spec = plan.tasks[t];
    const record& r = shared->tasks[t];
    if (spec.field != nobody || !is_told(t)) continue;
    if (spec.own.what != kind::value) check_own(t);
    if (spec.has_input && spec.reads == nobody) {
      for (std::uint32_t i = 0; i < spec.own.rows * spec.own.words; ++i) {
        const std::uint32_t place =
            i / spec.own.words * (spec.own.words + spec.own.gap) + i % spec.own.words;
        if (r.input[place] != make_word(word_kind::input, t, i))
          blame("task " + std::to_string(t) + ": its input was written");
      }
    }
    if (spec.has_result) check_result(t);
  }
}

}  // namespace lev::exercise
