// Packing the arguments of one task, one parameter after the other.
#include "pack.hpp"

#include <algorithm>

namespace lev::python {

hold* make_hold(session* owner, const plan& p, std::size_t tasks) {
  if (p.memory_count + p.result_count == 0) return nullptr;
  hold* h = new hold(owner, p.memory_count * tasks);
  if (p.result_count > 0) h->make_results(p, tasks);
  return h;
}

void check_argument_count(const plan& p, std::size_t given, bool are_ranges_passed) {
  const std::size_t wanted =
      p.slots.size() - p.result_count - (are_ranges_passed ? 0 : p.range_count);
  if (given == wanted) return;
  PyErr_Format(PyExc_TypeError,
               "procedure '%s' takes %zu arguments from its caller (\"%s\"), %zu given",
               p.name.c_str(), wanted, p.signature.c_str(), given);
  throw nb::python_error();
}

void check_has_range(const plan& p) {
  if (p.range_count != 0) return;
  raise_type_error("procedure '" + p.name + "' (\"" + p.signature +
                   "\") has no range parameter for the indices 0..n; use submit(), which cuts "
                   "arrays in leveret.sliced() as well");
}

argument pack_value(const place& where, nb::handle value) {
  argument a;
  a.address = to_bits(value, where.declared->type, where);
  a.unit_bytes = where.declared->type.bytes;
  a.what = kind::value;
  return a;
}

argument pack_range(lev::range r) noexcept {
  argument a;
  a.address = r.begin;
  a.row_bytes = r.end;
  a.what = kind::range;
  return a;
}

argument pack_result(const slot& s, char* place) noexcept {
  argument a;
  a.address = reinterpret_cast<std::uintptr_t>(place);
  a.row_bytes = s.type.bytes;
  a.stride_bytes = s.type.bytes;
  a.unit_bytes = s.type.bytes;
  a.what = kind::result;
  return a;
}

argument pack_memory(const place& where, nb::handle value, hold* h) {
  if (is_made<whole_array>(value))
    refuse_argument(PyExc_TypeError, where,
                    "whole() is for the columns of submit_bulk; pass the array itself");
  const bool is_sliced = is_made<sliced_array>(value);
  if (is_sliced) value = nb::inst_ptr<sliced_array>(value)->array;
  return memory_argument(whole_extent(h->open(value, where)), is_sliced, where);
}

// Ranges are cut when the caller asked for that, by parallel() or sliced(), or when no output
// stands in the way.
static void slice_ranges(const plan& p, bool is_parallel, argument* arguments) noexcept {
  bool is_sliced = is_parallel;
  bool has_output = false;
  for (std::size_t i = 0; i < p.slots.size(); ++i) {
    is_sliced |= (arguments[i].flags & argument_sliced) != 0;
    has_output |= arguments[i].what == kind::result || writes_memory(arguments[i].what);
  }
  if (!is_sliced && has_output) return;
  for (std::size_t i = 0; i < p.slots.size(); ++i)
    if (arguments[i].what == kind::range) arguments[i].flags = argument_sliced;
}

template <class Values>
static void pack(const plan& p, const Values& values, hold* h, std::size_t index,
                 const lev::range* whole, argument* arguments) {
  int next = 0;
  std::size_t result = 0;
  for (std::size_t i = 0; i < p.slots.size(); ++i) {
    const slot& s = p.slots[i];
    const place where{next, &s};
    argument& a = arguments[i];
    if (s.what == kind::result) {
      a = pack_result(s, h->result(result++) + index * s.type.bytes);
    } else if (s.what == kind::range && whole != nullptr) {
      a = pack_range(*whole);
    } else if (s.what == kind::range) {
      a = pack_range(to_range(values[next++], where));
    } else if (s.what == kind::value) {
      a = pack_value(where, values[next++]);
    } else {
      a = pack_memory(where, values[next++], h);
    }
  }
  check_lengths(p, arguments, whole == nullptr);
  if (p.range_count != 0) slice_ranges(p, whole != nullptr, arguments);
}

void pack_task(const plan& p, nb::tuple values, hold* h, std::size_t index, const lev::range* whole,
               argument* arguments) {
  pack(p, values, h, index, whole, arguments);
}

void pack_task(const plan& p, PyObject* const* values, hold* h, argument* arguments) {
  pack(p, values, h, 0, nullptr, arguments);
}

int position_of(const plan& p, int index, bool are_ranges_passed) noexcept {
  const auto is_passed = [&](const slot& s) {
    return s.what != kind::result && (are_ranges_passed || s.what != kind::range);
  };
  if (index < 0 || index >= static_cast<int>(p.slots.size()) || !is_passed(p.slots[index]))
    return -1;
  int position = 0;
  for (int i = 0; i < index; ++i) position += is_passed(p.slots[i]);
  return position;
}

std::string name_of(const plan& p, std::size_t index, bool are_ranges_passed) {
  const int position = position_of(p, static_cast<int>(index), are_ranges_passed);
  std::string text = position < 0 ? "the parameter" : "argument " + std::to_string(position);
  return text.append(" (").append(p.slots[index].text).append(")");
}

void raise_refusal(const plan& p, status code, const std::string& message, int argument,
                   bool are_ranges_passed) {
  const std::string text = in_python(message);
  const std::string word = "argument ";
  std::string said;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(word, from)) != std::string::npos;) {
    const std::size_t begin = at + word.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    const bool is_number = begin < end && end < begin + 3;
    const std::size_t index = is_number ? std::stoul(text.substr(begin, end - begin)) : ~0ul;
    const bool is_known = index < p.slots.size();
    said += text.substr(from, (is_known ? at : end) - from);
    if (is_known) said += name_of(p, index, are_ranges_passed);
    from = end;
  }
  raise_status(code, said + text.substr(from), position_of(p, argument, are_ranges_passed));
}

}  // namespace lev::python
