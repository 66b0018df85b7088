// See bodies.hpp. Steps of a body: it is counted, its order and its inputs are checked, its block
// runs, its outputs are written, its end is counted.
#include "exercise/bodies.hpp"

#include "base/random.hpp"
#include "exercise/interpret.hpp"
#include "exercise/scopes.hpp"
#include "machines/processes/lane.hpp"

#include <sched.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace lev::exercise {

namespace {

void note(record& r, fault f, std::uint64_t detail) noexcept {
  std::uint32_t none = 0;
  if (r.what.compare_exchange_strong(none, static_cast<std::uint32_t>(f))) r.detail.store(detail);
}

std::uint64_t* row_of(const argument& a, std::uint32_t row) noexcept {
  return reinterpret_cast<std::uint64_t*>(a.address +
                                          static_cast<std::uint64_t>(row * a.stride_bytes));
}

// One call of a body, as its arguments describe it.
struct body_call {
  where at;
  record& r;
  range items{0, 0};  // sliced: indices
  const argument* input = nullptr;
  const argument* own = nullptr;
  const argument* result = nullptr;
};

body_call read_call(const call& c) {
  const where at = detail::parameter<where>::unpack(c.arguments[0]);
  record& noted = at.shared->tasks[at.task];
  body_call b{at, at.shared->is_confined != 0 ? private_record(noted) : noted};
  for (unsigned i = 1; i < c.argument_count; ++i) {
    const argument& a = c.arguments[i];
    if (a.what == kind::range) b.items = {a.address, a.row_bytes};
    if (a.what == kind::in) b.input = &a;
    if (a.what == kind::out || a.what == kind::inout) b.own = &a;
    if (a.what == kind::result) b.result = &a;
  }
  return b;
}

// The number of the first row that a body was given: for a piece of a bulk, of its own row.
std::uint64_t first_row(const body_call& b, const argument& a) noexcept {
  const task_spec& spec = b.r.spec;
  if (spec.what == shape::sliced) return b.items.begin;
  if (spec.what != shape::bulk || (&a == b.input && spec.shares_input)) return 0;
  return row_of_piece(spec, b.at.piece);
}

// Calls what(word, index in the whole, index in the piece's row order) for each word of an
// argument.
template <class What>
void each_word(const body_call& b, const argument& a, const memory_spec& shape, What&& what) {
  const bool by_rows = shape.rows > 1 || b.r.spec.what == shape::bulk;
  const std::uint64_t first = first_row(b, a);
  for (std::uint32_t row = 0; row < a.rows; ++row) {
    const auto words = static_cast<std::uint32_t>(a.row_bytes / 8);
    for (std::uint32_t i = 0; i < words; ++i) {
      const std::uint64_t index = by_rows ? (first + row) * shape.words + i : first + i;
      what(row_of(a, row)[i], static_cast<std::uint32_t>(index));
    }
  }
}

// Pieces of one task may hold its mutex together: the upper half says whose they are.
bool hold(std::atomic<std::uint32_t>& holders, std::uint32_t task) noexcept {
  const std::uint32_t before = holders.fetch_add(1 + (task << 16));
  return before % 0x10000 == 0 || before >> 16 == task * (before % 0x10000);
}
void let_go(std::atomic<std::uint32_t>& holders, std::uint32_t task) noexcept {
  holders.fetch_sub(1 + (task << 16));
}

void check_order(body_call& b) {
  board& s = *b.at.shared;
  record& r = b.r;
  const std::uint32_t begun = r.begun.fetch_add(1);
  const bool is_plain = r.spec.what == shape::plain;
  if (s.is_remote == 0 && is_plain && begun != 0) note(r, fault::ran_twice, begun);
  if (r.spec.what == shape::bulk) {
    const std::uint8_t runs = r.piece_runs[b.at.piece % pieces_max].fetch_add(1);
    if (s.is_remote == 0 && runs != 0) note(r, fault::ran_twice, b.at.piece);
  }
  for (std::uint64_t left = r.after; left != 0; left &= left - 1) {
    const auto other = static_cast<std::uint32_t>(__builtin_ctzll(left));
    const record& p = s.tasks[other];
    const bool is_sliced = p.spec.what == shape::sliced;
    const std::uint32_t wanted = p.spec.what == shape::bulk ? p.spec.pieces : 1;
    if (is_sliced ? p.items.load() < p.spec.pieces : p.good.load() < wanted)
      note(r, fault::too_early, other);
  }
  for (unsigned m = 0; m < mutexes_max; ++m) {
    if ((r.locks >> m & 1) != 0 && s.is_remote == 0 && !hold(s.holders[m], b.at.task))
      note(r, fault::beside_holder, m);
  }
}

bool ended_well(const record& r) noexcept {
  return r.spec.what == shape::sliced ? r.items.load() == r.spec.pieces : r.good.load() != 0;
}

void check_input(body_call& b) {
  if (b.input == nullptr) return;
  const record& r = b.r;
  const std::uint32_t from = r.spec.reads;
  const record* p = from == nobody ? nullptr : &b.at.shared->tasks[from];
  // A task behind it that runs has seen its good end.
  const bool is_behind = p != nullptr && (b.at.shared->tasks[b.at.task].after >> from & 1) != 0;
  const bool is_good =
      p != nullptr && (ended_well(*p) || (is_behind && b.at.shared->is_confined != 0));
  // In place, what a body that failed has written may be there or not.
  if (p != nullptr && !is_good && p->begun.load() != 0) return;
  each_word(b, *b.input, r.input_shape, [&](std::uint64_t word, std::uint32_t i) {
    std::uint64_t wanted = make_word(word_kind::input, b.at.task, i);
    if (p != nullptr) {
      wanted = make_word(word_kind::before, from, i);
      if (is_good && p->spec.own.is_left) return;
      if (is_good)
        wanted = p->spec.own.what == kind::out ? make_word(word_kind::after, from, i)
                                               : word_step(wanted);
    }
    if (word != wanted) note(b.r, fault::wrong_input, i);
  });
}

void write_far(body_call& b) {
  const far<std::uint64_t> all = detail::parameter<far<std::uint64_t>>::unpack(*b.own);
  task_context task = this_task();
  const std::size_t half = all.size() / 2;
  for (unsigned part = 0; part < 2; ++part) {
    const std::size_t first = part == 0 ? 0 : half;
    const std::size_t count = part == 0 ? half : all.size() - half;
    if (count == 0) continue;
    std::uint64_t* words = task.get(all, first, count, part);
    task.wait(part);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t before =
          make_word(word_kind::before, b.at.task, static_cast<std::uint32_t>(first + i));
      if (words[i] != before) note(b.r, fault::wrong_initial, first + i);
      words[i] = word_step(before);
    }
    task.put(all, first, count, words, part);
    task.wait(part);
  }
}

void write_own(body_call& b) {
  const memory_spec& shape = b.r.spec.own;
  if (b.own != nullptr && shape.is_far) {
    write_far(b);
  } else if (b.own != nullptr && !shape.is_left) {
    each_word(b, *b.own, shape, [&](std::uint64_t& word, std::uint32_t i) {
      if (shape.what == kind::out) {
        word = make_word(word_kind::after, b.at.task, i);
        return;
      }
      if (word != make_word(word_kind::before, b.at.task, i)) note(b.r, fault::wrong_initial, i);
      word = word_step(word);
    });
  }
  if (b.result != nullptr && !b.r.spec.leaves_result)
    *row_of(*b.result, 0) = result_word(word_kind::after, b.at.task, b.at.piece);
}

// A copy of the bytes of an argument, and the way back.
unsigned gather_bytes(const argument* a, std::uint8_t* to) noexcept {
  unsigned count = 0;
  for (std::uint32_t row = 0; a != nullptr && row < a->rows; ++row, count += a->row_bytes)
    std::memcpy(to + count, row_of(*a, row), a->row_bytes);
  return count;
}
void scatter_bytes(const argument& a, const std::uint8_t* from) noexcept {
  for (std::uint32_t row = 0; row < a.rows; ++row, from += a.row_bytes)
    std::memcpy(row_of(a, row), from, a.row_bytes);
}

// A body that is to fail leaves all as it was, so that it is known also where it works in place.
void write_field(body_call& b, bool fails) {
  field_bytes input, own;
  input.count = gather_bytes(b.input, input.at);
  own.count = gather_bytes(b.own, own.at);
  const std::uint64_t word = field_step(b.at.task, b.r.spec, input, own);
  if (fails) return;
  if (b.own != nullptr) scatter_bytes(*b.own, own.at);
  if (b.result != nullptr) *row_of(*b.result, 0) = word;
}

// A hostile body says in its lane that tasks to come are cancelled, and dies.
[[noreturn]] void scribble(const call& c) {
  constexpr std::uintptr_t place_step = std::uintptr_t{1} << 22;
  const auto address = reinterpret_cast<std::uintptr_t>(c.arguments);
  auto& lane = *reinterpret_cast<processes::lane<>*>(address / place_step * place_step);
  const std::uint32_t own = lane.claimed.load();
  for (std::uint32_t n = own + 1; n <= own + processes::lane_records; ++n)
    lane.record_of(n).skip.store(n);
  raise(SIGKILL);
  std::abort();
}

bool ends_badly(const body_call& b) {
  if (b.r.spec.end == ending::ok) return false;
  if (b.r.spec.what == shape::sliced)
    return b.items.begin <= b.r.spec.bad_element && b.r.spec.bad_element < b.items.end;
  return b.r.spec.what != shape::bulk || (b.r.spec.bad_pieces >> b.at.piece & 1) != 0;
}

// Where that is allowed, a body leaves a changed argument: another attempt would read it.
[[noreturn]] void die(body_call& b) {
  if (b.r.changes_inputs && b.r.spec.field == nobody) write_own(b);
  raise(SIGKILL);
  std::abort();
}

void do_work(body_call& b) {
  board& s = *b.at.shared;
  const task_spec& spec = b.r.spec;
  for (std::uint32_t i = 0; i < spec.turns; ++i) asm volatile("");
  if (spec.sets_flag != nobody) s.flags[spec.sets_flag].store(1);
  if (spec.spins_on != nobody && !spin_on(s, spec.spins_on, false))
    note(b.r, fault::flag_never_set, spec.spins_on);
  if (s.is_remote == 0 && spec.body != nobody) run_body(*s.home, b.at.task);
}

void note_elements(body_call& b) {
  record& r = b.r;
  if (b.items.begin >= b.items.end || b.items.end > r.spec.pieces)
    return note(r, fault::wrong_range, b.items.begin);
  r.items.fetch_add(static_cast<std::uint32_t>(b.items.size()));
  for (std::uint64_t i = b.items.begin; i < b.items.end; ++i) {
    if (r.piece_good[i].fetch_add(1) != 0) note(r, fault::ran_twice, i);
  }
}

int run(const call& c) {
  body_call b = read_call(c);
  record& r = b.r;
  const bool has_field = r.spec.field != nobody;
  check_order(b);
  if (!has_field) check_input(b);
  const bool is_bad = ends_badly(b);
  const std::uint32_t attempt =
      r.spec.what == shape::bulk ? r.piece_runs[b.at.piece % pieces_max].load() : r.begun.load();
  if (is_bad && r.spec.end == ending::crash && attempt <= r.spec.attempts) die(b);
  if (is_bad && r.spec.end == ending::scribble) scribble(c);
  do_work(b);
  if (has_field)
    write_field(b, is_bad && (r.spec.end == ending::throws || r.spec.end == ending::code));
  else
    write_own(b);
  for (unsigned m = 0; m < mutexes_max; ++m) {
    if ((r.locks >> m & 1) != 0 && b.at.shared->is_remote == 0)
      let_go(b.at.shared->holders[m], b.at.task);
  }
  r.ended.fetch_add(1);
  if (b.at.shared->is_confined != 0 && r.what.load() != 0) throw std::runtime_error(finding_in(r));
  if (is_bad && r.spec.end == ending::throws)
    throw std::runtime_error("task " + std::to_string(b.at.task));
  if (is_bad && r.spec.end == ending::code) return static_cast<int>(b.at.task) + 1;
  r.good.fetch_add(1);
  if (r.spec.what == shape::sliced)
    note_elements(b);
  else
    r.piece_good[b.at.piece % pieces_max].fetch_add(1);
  return 0;
}

// The part of a sliced argument that belongs to `items` of the `whole`.
argument part_of(argument a, range whole, range items) {
  const std::uint64_t skipped = items.begin - whole.begin;
  if (a.rows > 1) {
    a.address += static_cast<std::uint64_t>(a.stride_bytes) * skipped;
    a.rows = static_cast<std::uint32_t>(items.size());
  } else {
    a.address += 8 * skipped;
    a.row_bytes = 8 * items.size();
    a.stride_bytes = static_cast<std::int64_t>(a.row_bytes);
  }
  return a;
}

// Cuts off a first part of any size; declines now and then, in each of the ways there are.
unsigned cut(const descriptor& whole, descriptor* pieces, unsigned pieces_max) {
  const range all{whole.arguments[1].address, whole.arguments[1].row_bytes};
  const std::uint64_t mood = mix64(all.begin * 64 + all.end);
  if (mood % 8 == 0) throw std::runtime_error("a hook that declines");
  if (all.size() < 2 || pieces_max < 2 || mood % 8 < 3) return static_cast<unsigned>(mood % 2);
  const std::uint64_t at = all.begin + 1 + mood / 8 % (all.size() - 1);
  const range parts[2] = {{all.begin, at}, {at, all.end}};
  for (unsigned i = 0; i < 2; ++i) {
    pieces[i] = whole;
    for (unsigned k = 1; k < whole.argument_count; ++k) {
      argument& a = pieces[i].arguments[k];
      if (a.what == kind::range)
        a.address = parts[i].begin, a.row_bytes = parts[i].end;
      else
        a = part_of(a, all, parts[i]);
    }
  }
  return 2;
}

std::uint64_t costs(const descriptor& task) {
  const std::uint64_t mood = mix64(task.arguments[1].address);
  if (mood % 4 == 0) throw std::runtime_error("a hook that does not know");
  return mood % 100'000;
}

// Every combination of arguments is a procedure of its own, and with hooks another one.
struct table {
  static constexpr unsigned plain_forms = 2 * 2 * 3 * 2 * 2;
  static constexpr unsigned forms = 2 * plain_forms;
  kind kinds[forms][5];
  procedure_id ids[forms];
  static unsigned form(const task_spec& t) {
    const unsigned memory = t.own.what == kind::out ? 1 : t.own.what == kind::inout ? 2 : 0;
    const unsigned plain =
        (((memory * 2 + t.has_input) * 2 + t.has_result) * 2 + (t.what == shape::sliced)) * 2 +
        t.may_rerun;
    return plain + (t.has_hooks ? plain_forms : 0);
  }
  table() {
    for (unsigned form = 0; form < forms; ++form) {
      const unsigned i = form % plain_forms;
      unsigned n = 0;
      kinds[form][n++] = kind::value;
      if ((i & 2) != 0) kinds[form][n++] = kind::range;
      if ((i & 8) != 0) kinds[form][n++] = kind::in;
      if (i >> 4 != 0) kinds[form][n++] = i >> 4 == 1 ? kind::out : kind::inout;
      if ((i & 4) != 0) kinds[form][n++] = kind::result;
      const std::string name = "exercise." + std::to_string(form);
      procedure_info info;
      info.name = name.c_str();
      info.run = &run;
      info.kinds = kinds[form];
      info.kind_count = n;
      info.may_rerun = (i & 1) != 0;
      if (form != i) info.dice = &cut, info.cost = &costs;
      if (register_procedure(info, &ids[form]) != status::ok) std::abort();
    }
  }
};
const table procedures;

// The row of a memory argument that a piece of a bulk has.
argument row_argument(kind k, std::uint64_t* place, const memory_spec& shape, std::uint32_t row) {
  return detail::memory_argument(k, view(place + row * (shape.words + shape.gap), shape.words));
}

argument memory_of(kind k, std::uint64_t* place, const memory_spec& shape) {
  const auto stride = static_cast<std::ptrdiff_t>(shape.words + shape.gap);
  const bool has_rows = shape.rows > 1;
  memory<std::uint64_t> m =
      has_rows ? strided(place, shape.rows, shape.words, stride) : view(place, shape.words);
  return detail::memory_argument(k, m);
}

memory<std::uint8_t> memory_in(std::uint8_t* field, const field_block& b) {
  std::uint8_t* const first = field + b.row * field_row_bytes + b.byte;
  const bool is_whole = is_contiguous(b) && b.row % 2 == 0;  // as one row, then
  if (b.rows == 1 || is_whole) return view(first, std::size_t{b.rows} * b.bytes);
  return strided(first, b.rows, b.bytes, field_row_bytes);
}

// The arguments of an ordered task behind its first one.
unsigned describe_field(const task_spec& t, std::uint8_t* field, argument* arguments) {
  unsigned n = 0;
  if (t.has_input)
    arguments[n++] = detail::memory_argument(kind::in, memory_in(field, t.field_input));
  if (t.own.what != kind::value)
    arguments[n++] = detail::memory_argument(t.own.what, memory_in(field, t.field_own));
  if (!t.has_result) return n;
  auto* const word = reinterpret_cast<std::uint64_t*>(field + t.field_result_row * field_row_bytes);
  arguments[n++] = detail::parameter<lev::result<std::uint64_t>>::pack(*word);
  return n;
}

}  // namespace

procedure_id procedure_for(const task_spec& t) noexcept {
  return procedures.ids[table::form(t)];
}

descriptor describe(const world& w, std::uint32_t task, std::uint32_t piece) {
  const task_spec& t = w.plan.tasks[task];
  const record& r = w.shared->tasks[task];
  const bool is_sliced = t.what == shape::sliced;
  const bool is_bulk = t.what == shape::bulk;
  const std::uint32_t row = is_bulk ? row_of_piece(t, piece) : 0;
  descriptor d;
  d.procedure = procedure_for(t);
  unsigned n = 0;
  d.arguments[n++] = detail::parameter<where>::pack({w.shared, task, piece});
  if (t.field != nobody) {
    n += describe_field(t, w.scopes[t.field].field, d.arguments + n);
    d.argument_count = static_cast<std::uint8_t>(n);
    return d;
  }
  if (is_sliced) d.arguments[n++] = detail::parameter<range>::pack({0, t.pieces});
  if (t.has_input) {
    d.arguments[n] = is_bulk && !t.shares_input
                         ? row_argument(kind::in, r.input, r.input_shape, row)
                         : memory_of(kind::in, r.input, r.input_shape);
    if (is_sliced) d.arguments[n].flags |= argument_sliced;
    ++n;
  }
  if (t.own.what != kind::value) {
    d.arguments[n] =
        is_bulk ? row_argument(t.own.what, r.own, t.own, row) : memory_of(t.own.what, r.own, t.own);
    if (is_sliced) d.arguments[n].flags |= argument_sliced;
    if (t.own.is_far) d.arguments[n].flags |= argument_far;
    ++n;
  }
  if (t.has_result)
    d.arguments[n++] = detail::parameter<lev::result<std::uint64_t>>::pack(r.result[row]);
  d.argument_count = static_cast<std::uint8_t>(n);
  return d;
}

void make_columns(const world& w, std::uint32_t task, descriptor& d) {
  const task_spec& t = w.plan.tasks[task];
  const std::int64_t turn = t.is_backward ? -8 : 8;
  const std::int64_t stride = turn * (t.own.words + t.own.gap);
  for (unsigned i = 0; i < d.argument_count; ++i) {
    argument& a = d.arguments[i];
    if (a.what == kind::value || (a.what == kind::in && t.shares_input)) continue;
    a.flags |= argument_each;
    a.stride_bytes = a.what == kind::result ? turn : stride;
  }
}

bool spin_on(board& shared, std::uint32_t flag, bool passes_time) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(shared.spin_limit_ns);
  for (std::uint32_t turn = 1; shared.flags[flag].load() == 0; ++turn) {
    if (shared.gives_up.load() != 0) return true;
    if (passes_time) this_task().pass_time(100);
    if (turn % 64 != 0) continue;
    if (!passes_time) sched_yield();
    if (std::chrono::steady_clock::now() < end) continue;
    shared.gives_up.store(1);
    return false;
  }
  return true;
}

}  // namespace lev::exercise
