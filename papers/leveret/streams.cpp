// CellMT's synthetic benchmark as tasks of Leveret that get and put blocks themselves: a task of
// each worker with one buffer or two, or as many tasks as CellMT has threads, which give way to
// each other while they wait.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "leveret/by_leveret.hpp"
#include "leveret/pipeline.hpp"

namespace leveret_papers {

namespace {

constexpr unsigned share_bytes = 1 << 20;  // of memory for a worker; read again and again

struct plan {
  const stream& what;
  std::uint64_t work;      // cycles of a block
  std::uint64_t own_work;  // the runtime's, of a block that is got and put
  unsigned blocks;         // of one task

  std::size_t place(unsigned i) const { return std::size_t{i} * what.bytes % share_bytes; }
};

void compute(lev::task_context& here, const plan& p) {
  here.pass_time(p.work + p.own_work);
}

void by_one_buffer(lev::task_context& here, const plan& p, const lev::far<char>& memory) {
  for (unsigned i = 0; i < p.blocks; ++i) {
    const char* block = here.get(memory, p.place(i), p.what.bytes, 0);
    here.wait(0);
    compute(here, p);
    if (!p.what.is_put_back) continue;
    here.put(memory, p.place(i), p.what.bytes, block, 0);
    here.wait(0);
  }
}

void by_two_buffers(lev::task_context& here, const plan& p, const lev::far<char>& memory) {
  const char* blocks[2] = {here.get(memory, p.place(0), p.what.bytes, 0), nullptr};
  for (unsigned i = 0; i < p.blocks; ++i) {
    const unsigned mine = i % 2;
    const unsigned next = 1 - mine;
    here.wait(next);  // what was put of it
    if (i + 1 < p.blocks) blocks[next] = here.get(memory, p.place(i + 1), p.what.bytes, next);
    here.wait(mine);
    compute(here, p);
    if (p.what.is_put_back) here.put(memory, p.place(i), p.what.bytes, blocks[mine], mine);
  }
  here.wait_all(3);
}

void run_stream(std::uint64_t of, lev::far<char> memory) {
  const plan& p = *reinterpret_cast<const plan*>(of);
  lev::task_context here = lev::this_task();
  p.what.how == buffering::twofold ? by_two_buffers(here, p, memory)
                                   : by_one_buffer(here, p, memory);
}
std::uint64_t no_cost(const lev::descriptor&) {
  return 0;
}

const auto stream_procedure = lev::define("papers_stream", &run_stream, nullptr, &no_cost);

}  // namespace

double bytes_per_second_by_leveret(world& w, const stream& what) {
  constexpr unsigned blocks_each = 40;
  const unsigned threads = what.how == buffering::threads ? what.threads : 1;
  const unsigned blocks = blocks_each * std::max(15u, threads) / threads;
  const double own = w.number("leveret.instructions") * w.number("leveret.instruction");
  const plan p{what, static_cast<std::uint64_t>(std::llround(what.cycles_per_byte * what.bytes)),
               static_cast<std::uint64_t>(own * w.own_work()), blocks};
  std::vector<char> memory(share_bytes);
  lev::config c;
  c.machine = "sim";
  c.sim_machine = what.machine;
  c.workers = static_cast<int>(what.spes);
  c.staging = lev::staging::copy;
  c.depth = 1;
  c.contexts = threads;
  lev::runtime runtime(c);
  const std::uint64_t begin = runtime.now_ns();
  for (unsigned i = 0; i < what.spes * threads; ++i)
    runtime.post(stream_procedure, reinterpret_cast<std::uint64_t>(&p),
                 lev::view(memory.data(), memory.size()));
  if (runtime.wait_for_completion().code != lev::status::ok)
    throw std::runtime_error("a task of a paper's row failed");
  const double seconds = static_cast<double>(runtime.now_ns() - begin) * 1e-9;
  return double(what.bytes) * blocks * threads * what.spes / seconds;
}

}  // namespace leveret_papers
