// A run of Jack Rabbit's pool: memory, programs, batches; see pool.hpp.
#include "jack_rabbit/pool.hpp"

#include "jack_rabbit/queues.hpp"
#include "leveret/by_leveret.hpp"

namespace leveret_papers {

namespace {

line free_lock(cell::machine& m) {
  line l = m.memory<std::uint32_t>(32);
  l[0] = 1;
  return l;
}

}  // namespace

void prepare(rabbit_run& r) {
  rabbit_queues& q = r.q;
  for (auto* buffer : {&q.prefilter, &q.rob, &q.ready}) *buffer = r.m.memory<rabbit_buffer>(1);
  for (auto* lock :
       {&q.prefilter_lock, &q.rob_lock, &q.fetch_lock, &q.gate_lock, &q.completion_lock})
    *lock = free_lock(r.m);
  for (auto* words : {&q.jobs, &q.gate, &q.completion}) *words = r.m.memory<std::uint32_t>(32);
  q.objects = r.m.memory<char>(std::size_t{object_count} * object_bytes);
  q.arguments = r.m.memory<char>(argument_bytes);
  const double kib = r.w.number("jack_rabbit.program");
  q.program = r.m.memory<char>(static_cast<std::size_t>(kib) * 1024);
  r.before.push_back(0);
  for (const std::int64_t work : r.what.pieces) r.before.push_back(r.before.back() + work);
}

rabbit_outcome run_rabbit(world& w, const rabbit_pool& what, const rabbit_batches& make,
                          const std::function<void(cell::machine&)>& look) {
  if (w.is_by_leveret()) return run_rabbit_by_leveret(w, what, make);
  cell::machine m(w.file("cell-ps3"), world::options(false));
  rabbit_run r{w, what, m};
  prepare(r);
  r.batches = make(m);
  for (unsigned i = 0; i < what.spes; ++i)
    m.spe_program(i, [&](cell::spe& s) { work(s, r); }, "worker " + std::to_string(i));
  m.ppe_program([&](cell::ppe& p) { post_all(p, r); }, "caller", 0);
  m.ppe_program([&](cell::ppe& p) { schedule(p, r); }, "scheduler", 1);
  w.run(m);
  if (look) look(m);
  return std::move(r.out);
}

}  // namespace leveret_papers
