// irregular: queens, quicksort and an unbalanced tree by nested tasks, beside OpenMP tasks and
// oneTBB task groups.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <array>
#include <typeinfo>

namespace bench {
namespace {

// The runtime that nested tasks submit to, set before the first.
lev::runtime* runtime_of_tasks = nullptr;

struct ticket_fork {
  static constexpr std::size_t few = 32;

  template <auto body, class Node>
  static void all(Node* nodes, std::size_t count) {
    if (count == 1) return body(nodes[0]);
    static const auto one =  // each program has nodes of its own
        lev::define(text("bench.fork.%s", typeid(Node).name()).c_str(),
                    [](std::uintptr_t node) { body(*reinterpret_cast<Node*>(node)); });
    std::array<lev::ticket, few> on_stack;
    std::vector<lev::ticket> on_heap(count > few ? count - 1 : 0);
    lev::ticket* const others = count > few ? on_heap.data() : on_stack.data();
    for (std::size_t i = 0; i + 1 < count; ++i) {
      others[i] = runtime_of_tasks->submit(one, reinterpret_cast<std::uintptr_t>(nodes + i));
    }
    body(nodes[count - 1]);
    check(lev::wait_all(others, count - 1).code == lev::status::ok, "wait_all");
  }
};

constexpr irregular_programs by_tasks = irregular_of<ticket_fork>();
constexpr irregular_programs serially = irregular_of<serial_fork>();

struct program {
  const char* name;
  std::uint64_t answer;
  // Runs it once: the answer, and how long it took.
  std::function<std::uint64_t(const irregular_programs&, double* ms)> run;
};

template <class Call>
double ms_of(Call&& call) {
  const std::uint64_t start_ns = now_ns();
  call();
  return static_cast<double>(now_ns() - start_ns) / 1e6;
}

std::uint64_t sorted_sum(const std::vector<std::uint64_t>& data) {
  check(std::is_sorted(data.begin(), data.end()), "sort");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < data.size(); ++i) sum += data[i] * (i + 1);
  return sum;
}

std::vector<program> all_programs(const settings& how) {
  const unsigned board = how.quick ? 10 : 12;
  const std::size_t count = how.scaled(4'000'000);
  const unsigned branches = how.quick ? 2'000 : 20'000;
  std::vector<program> all;
  all.push_back({"queens", 0, [=](const irregular_programs& by, double* ms) {
                   std::uint64_t answer = 0;
                   *ms = ms_of([&] { answer = by.queens(board); });
                   return answer;
                 }});
  all.push_back({"sort", 0, [=](const irregular_programs& by, double* ms) {
                   std::vector<std::uint64_t> data(count);
                   for (std::size_t i = 0; i < count; ++i) data[i] = mix(i + 1);
                   *ms = ms_of([&] { by.sort(data.data(), count); });
                   return sorted_sum(data);
                 }});
  all.push_back({"tree", 0, [=](const irregular_programs& by, double* ms) {
                   std::uint64_t answer = 0;
                   *ms = ms_of([&] { answer = by.tree(branches, 7); });
                   return answer;
                 }});
  for (program& p : all) {
    double ms = 0;
    p.answer = p.run(serially, &ms);
  }
  return all;
}

std::function<double()> contestant(const program& p, const irregular_programs* by) {
  if (by == nullptr) return {};
  return [&p, by] {
    double ms = 0;
    check(p.run(*by, &ms) == p.answer, p.name);
    wait_until_quiet();
    return ms;
  };
}

void add_rival(report& figures, const char* name, const char* key, const rival& r,
               const samples& leveret, const samples& peer) {
  const std::string full_key = text("%s_over_%s", name, key);
  const figure_spec spec{full_key.c_str(), "ratio", "< 1"};
  if (peer.empty()) return figures.add(spec, {}, r.absent);
  figures.add(spec, ratio(leveret, peer), text("%s: %.1f ms", r.table->name, median(peer)));
}

const irregular_programs* programs_of(const rival& r) {
  return r.table == nullptr ? nullptr : r.table->programs;
}

}  // namespace

void irregular_tasks(const settings& how, report& figures) {
  lev::config settings;
  settings.tickets = 1 << 16;  // the tree's root has 20,000 children, all of whom have children
  lev::runtime runtime(settings);
  runtime_of_tasks = &runtime;
  for (const program& p : all_programs(how)) {
    const auto ms = interleave(
        how.rounds(), {contestant(p, &by_tasks), contestant(p, &serially),
                       contestant(p, programs_of(openmp())), contestant(p, programs_of(onetbb()))});
    const std::string key = text("%s_speed_up", p.name);
    figures.add({key.c_str(), "ratio", ""}, ratio(ms[1], ms[0]),
                text("serially: %.1f ms", median(ms[1])));
    add_rival(figures, p.name, "openmp", openmp(), ms[0], ms[2]);
    add_rival(figures, p.name, "onetbb", onetbb(), ms[0], ms[3]);
  }
}

}  // namespace bench
