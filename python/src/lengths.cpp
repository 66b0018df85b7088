// A function is told one length and believes it of all its arrays: an array that is shorter would
// be read or written behind its end, in the host itself on `threads`. So the signature says which
// lengths belong together, and a task that breaks that is refused.
#include "pack.hpp"

namespace lev::python {

namespace {

std::uint64_t elements(const argument& a) noexcept {
  return a.unit_bytes == 0 ? 0 : a.row_bytes / a.unit_bytes * a.rows;
}

std::uint64_t rows(const argument& a) noexcept {
  return a.row_bytes == 0 ? 0 : a.rows;
}

bool is_sliced(const argument& a) noexcept {
  return (a.flags & argument_sliced) != 0;
}

bool is_long_enough(const length_rule& rule, const argument& a, const argument* all) noexcept {
  switch (rule.what) {
    case least::any:
      return true;
    case least::fixed:
      return elements(a) >= rule.n;
    case least::count:
      return elements(a) >= elements(all[rule.n]);
    case least::rows:
      return elements(a) >= rows(all[rule.n]);
    case least::shape:
      return a.row_bytes >= all[rule.n].row_bytes && rows(a) >= rows(all[rule.n]);
  }
  return false;
}

std::string shape_text(const argument& a) {
  const std::string row = std::to_string(a.unit_bytes == 0 ? 0 : a.row_bytes / a.unit_bytes);
  return a.rows == 1 ? row + " elements" : std::to_string(a.rows) + " rows of " + row;
}

std::string counted(std::uint64_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string asked_for(const plan& p, const length_rule& rule, const argument* all,
                      bool are_ranges_passed) {
  if (rule.what == least::fixed) return "the procedure takes at least " + std::to_string(rule.n);
  const argument& of = all[rule.n];
  const std::string name = name_of(p, rule.n, are_ranges_passed);
  if (rule.what == least::rows)
    return "the procedure takes one for each row of " + name + ", which has " +
           counted(rows(of), "row");
  if (rule.what == least::shape)
    return "the procedure is told the shape of " + name + ", " + shape_text(of);
  return "the procedure is told the length of " + name + ", " + counted(elements(of), "element");
}

[[noreturn]] void refuse_short(const plan& p, const length_rule& rule, const argument* all,
                               bool are_ranges_passed, const place& where) {
  const argument& a = all[rule.argument];
  std::string text = "has ";
  text += rule.what == least::shape ? shape_text(a) : counted(elements(a), "element");
  text += "; " + asked_for(p, rule, all, are_ranges_passed) + "; pass an array that long";
  if (rule.what != least::fixed)
    text += ", or say in the signature how long it must be: '" + where.declared->text +
            "[N]', [count(N)], [rows(N)] or [any]";
  refuse_argument(PyExc_ValueError, where, text);
}

[[noreturn]] void refuse_cut(const plan& p, const length_rule& rule, bool are_ranges_passed,
                             const place& where) {
  const std::string begin = "dicing would cut it, and not ";
  if (rule.what == least::fixed)
    refuse_argument(PyExc_ValueError, where,
                    "the procedure takes at least " + std::to_string(rule.n) +
                        " elements, and a cut array has fewer; pass it without leveret.sliced()");
  refuse_argument(PyExc_ValueError, where,
                  begin + name_of(p, rule.n, are_ranges_passed) +
                      ", whose length the procedure is told; wrap both in leveret.sliced(), or "
                      "none");
}

}  // namespace

void check_lengths(const plan& p, const argument* arguments, bool are_ranges_passed) {
  for (const length_rule& rule : p.lengths) {
    const argument& a = arguments[rule.argument];
    const bool is_cut_alone =
        is_sliced(a) && (rule.what == least::fixed || !is_sliced(arguments[rule.n]));
    if (!is_cut_alone && is_long_enough(rule, a, arguments)) continue;
    const place where{position_of(p, rule.argument, are_ranges_passed), &p.slots[rule.argument]};
    if (is_cut_alone) refuse_cut(p, rule, are_ranges_passed, where);
    refuse_short(p, rule, arguments, are_ranges_passed, where);
  }
}

}  // namespace lev::python
