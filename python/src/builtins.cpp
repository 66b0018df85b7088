// The built-in procedures, written like a user's.
#include "builtins.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <string>

namespace lev::python {

namespace {

void null() {}

void spin(std::uint64_t ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
  while (std::chrono::steady_clock::now() < end) {
  }
}

template <class Function>
void each_row(std::size_t rows, Function&& function) {
  for (std::size_t r = 0; r < rows; ++r) function(r);
}

// As NumPy refuses to add arrays of two shapes.
template <class From, class To>
void expect_same_shape(const From& from, const To& to, const char* names) {
  if (from.rows() == to.rows() && from.row_size() == to.row_size()) return;
  const auto shape = [](const auto& a) {
    return std::to_string(a.rows()) + " by " + std::to_string(a.row_size());
  };
  throw std::invalid_argument(std::string(names) + " must have one shape, and have " + shape(from) +
                              " and " + shape(to) + " elements");
}

void copy(in<std::uint8_t> from, out<std::uint8_t> to) {
  expect_same_shape(from, to, "copy: what is copied and its place");
  each_row(from.rows(),
           [&](std::size_t r) { std::copy_n(from.row(r), from.row_size(), to.row(r)); });
}

void scale(double factor, inout<double> x) {
  each_row(x.rows(), [&](std::size_t r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) x.row(r)[i] *= factor;
  });
}

void axpy(double a, in<double> x, inout<double> y) {
  expect_same_shape(x, y, "axpy: x and y");
  each_row(x.rows(), [&](std::size_t r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) y.row(r)[i] += a * x.row(r)[i];
  });
}

void sum(in<double> x, result<double> total) {
  double s = 0;
  each_row(x.rows(), [&](std::size_t r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) s += x.row(r)[i];
  });
  total = s;
}

using table = std::map<std::string, const plan*>;

// The parameters twice: in Python's terms for packing, in C++'s for the body.
template <class... Parameters>
void add(table& all, const char* name, const char* signature, void (*function)(Parameters...),
         const std::vector<parameter>& parameters) {
  plan* p = make_plan(parameters).release();  // it lives as long as the process
  p->name = std::string("leveret.") + name;
  p->signature = signature;
  p->id = define(p->name.c_str(), function).id;
  all[name] = p;
}

table make_built_in() {
  table all;
  const parameter factor{"value", 'f', 8, 0};
  const parameter in_f8{"in", 'f', 8, 0};
  const parameter inout_f8{"inout", 'f', 8, 0};
  add(all, "null", "", null, {});
  add(all, "spin", "u8", spin, {{"value", 'u', 8, 0}});
  add(all, "copy", "in u1, out u1", copy, {{"in", 'u', 1, 0}, {"out", 'u', 1, 0}});
  add(all, "scale", "f8, inout f8", scale, {factor, inout_f8});
  add(all, "axpy", "f8, in f8, inout f8", axpy, {factor, in_f8, inout_f8});
  add(all, "sum", "in f8, result f8", sum, {in_f8, {"result", 'f', 8, 0}});
  return all;
}

}  // namespace

void register_plan(plan& p, body run) {
  procedure_info info;
  info.name = p.name.c_str();
  info.run = run;
  info.context = &p;
  if (p.function != nullptr) {
    make_portable(p);
    info.portable = &p.portable;
  }
  info.kinds = p.kinds.data();
  info.kind_count = static_cast<unsigned>(p.kinds.size());
  const status code = register_procedure(info, &p.id);
  if (code == status::ok) return;
  std::string message = "procedure '" + p.name + "': ";
  if (code == status::exists) {
    message += "the name is taken; give another one with name=";
  } else if (code == status::too_big) {
    message += p.name.size() > procedure_name_bytes_max
                   ? "the name has more than 63 bytes; choose a shorter one with name="
                   : "the table is full: a process has at most 1023 procedures and none is ever "
                     "removed; define each once, and pass what differs as an argument";
  } else {
    message += status_name(code);
  }
  raise_status(code, message);
}

const plan& builtin(const std::string& name) {
  static const table all = make_built_in();
  const auto found = all.find(name);
  if (found != all.end()) return *found->second;
  std::string known;
  for (const auto& [each, unused] : all) known += (known.empty() ? "" : ", ") + each;
  raise_value_error("there is no built-in procedure '" + name + "'; there are: " + known);
}

}  // namespace lev::python
