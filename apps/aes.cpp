// AES as tasks, in two forms: with the data declared, and with tasks that get, encrypt and put.
//
// 1. Cut the buffer into tasks of whole blocks; 2. submit all as one bulk; 3. wait. Dicing cuts a
// task further: by blocks in ECB, by bytes in CTR, whose kernel may begin inside a block.
#include "leveret_apps/aes.hpp"

#include <algorithm>
#include <vector>

#include "aes_kernel.hpp"
#include "drained.hpp"
#include "far_memory.hpp"
#include "random.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

// CellMT, section 5.4, for IBM's kernel on an SPE.
constexpr std::uint64_t cycles_per_byte = 13;

// Bytes of the smallest piece: 5 us at 13 cycles a byte and 3.2 GHz, as for the other applications.
constexpr std::uint32_t grain_bytes = 1024;

struct block {
  std::uint8_t bytes[aes_block_bytes];
};

void ecb_task(aes_kernel kernel, lev::in<aes_schedule> schedule, lev::in<block> from,
              lev::out<block> to) {
  aes_run(kernel, aes_mode::ecb, schedule[0], {}, 0, from.data()->bytes,
          from.size() * sizeof(block), to.data()->bytes);
}

void ctr_task(aes_kernel kernel, lev::in<aes_schedule> schedule, aes_counter counter,
              lev::range offsets, lev::in<std::uint8_t> from, lev::out<std::uint8_t> to) {
  aes_run(kernel, aes_mode::ctr, schedule[0], counter, offsets.begin, from.data(), from.size(),
          to.data());
}

struct how {
  aes_kernel kernel;
  std::uint32_t chunk_bytes;
  std::uint32_t buffers;
};

// With one buffer Listing 1 of the paper, with two Listing 3; each has its tag, under which a get
// follows the put before. But what was got may be the caller's memory, not to be changed: so the
// result has buffers of its own. Units are blocks in ECB, bytes in CTR, as dicing cuts `units`.
template <class Unit>
void far_chunks(how h, aes_mode mode, const aes_schedule& schedule, const aes_counter& counter,
                lev::range units, const lev::far<const Unit>& from, const lev::far<Unit>& to) {
  auto task = lev::this_task();
  const std::size_t chunk = h.chunk_bytes / sizeof(Unit);
  const std::size_t chunks = (units.size() + chunk - 1) / chunk;
  const auto first_of = [&](std::size_t c) { return units.begin + c * chunk; };
  const auto count_of = [&](std::size_t c) {
    return std::min<std::size_t>(chunk, units.end - first_of(c));
  };
  const Unit* plain[lev::task_tags] = {};
  std::vector<Unit> encrypted(chunk * h.buffers);
  const auto start = [&](std::size_t c) {
    const auto tag = static_cast<unsigned>(c % h.buffers);
    plain[tag] = task.get(from, first_of(c), count_of(c), tag);
  };
  for (std::size_t c = 0; c < std::min<std::size_t>(h.buffers, chunks); ++c) start(c);
  for (std::size_t c = 0; c < chunks; ++c) {
    const auto tag = static_cast<unsigned>(c % h.buffers);
    const std::size_t bytes = count_of(c) * sizeof(Unit);
    Unit* result = encrypted.data() + tag * chunk;
    task.wait(tag);
    aes_run(h.kernel, mode, schedule, counter, first_of(c) * sizeof(Unit),
            reinterpret_cast<const std::uint8_t*>(plain[tag]), bytes,
            reinterpret_cast<std::uint8_t*>(result));
    task.pass_time(bytes * cycles_per_byte);
    task.put(to, first_of(c), count_of(c), result, tag);
    if (c + h.buffers < chunks) start(c + h.buffers);
  }
  for (unsigned tag = 0; tag < h.buffers; ++tag) task.wait(tag);
}

void far_ecb_task(how h, lev::in<aes_schedule> schedule, lev::range blocks,
                  lev::far<const block> from, lev::far<block> to) {
  far_chunks(h, aes_mode::ecb, schedule[0], {}, blocks, from, to);
}

void far_ctr_task(how h, lev::in<aes_schedule> schedule, aes_counter counter, lev::range bytes,
                  lev::far<const std::uint8_t> from, lev::far<std::uint8_t> to) {
  far_chunks(h, aes_mode::ctr, schedule[0], counter, bytes, from, to);
}

// The last argument is as long as the data, in all declared tasks.
std::uint64_t declared_cycles(const lev::descriptor& task) {
  return task.arguments[task.argument_count - 1].row_bytes * cycles_per_byte;
}
// Far tasks pass their time themselves.
std::uint64_t far_cycles(const lev::descriptor&) {
  return 0;
}

const auto ecb_procedure = lev::define("aes_ecb", &ecb_task, nullptr, &declared_cycles);
const auto ctr_procedure = lev::define("aes_ctr", &ctr_task, nullptr, &declared_cycles);
const auto far_ecb_procedure = lev::define("aes_far_ecb", &far_ecb_task, nullptr, &far_cycles);
const auto far_ctr_procedure = lev::define("aes_far_ctr", &far_ctr_task, nullptr, &far_cycles);

void check_size(aes_mode mode, std::size_t bytes) {
  if (mode == aes_mode::ecb && bytes % aes_block_bytes != 0)
    throw lev::error(lev::status::bad_argument, -1,
                     "ECB encrypts whole blocks: take a multiple of 16 bytes, or CTR");
}

void check(lev::runtime& runtime, const aes_options& o, const std::uint8_t* from,
           const std::uint8_t* to) {
  check_size(o.mode, o.bytes);
  if (o.form == aes_form::far) {
    need_far_memory(runtime, "aes");
    if (o.chunk_bytes % aes_block_bytes != 0 || o.chunk_bytes == 0 ||
        o.chunk_bytes > aes_chunk_bytes_max)
      throw lev::error(lev::status::bad_argument, -1,
                       "chunk_bytes must be a multiple of 16, from 16 to 16384");
    if (o.buffers == 0 || o.buffers > lev::task_tags)
      throw lev::error(lev::status::bad_argument, -1, "buffers must be 1 to 16");
  }
  if (!aes_has(o.kernel))
    throw lev::error(lev::status::unavailable, -1,
                     "the kernel 'openssl' was not built: configure with LEVERET_OPENSSL=ON where "
                     "libcrypto and its headers are installed, or take 'portable'");
  if (from < to + o.bytes && to < from + o.bytes)
    throw lev::error(lev::status::overlap, -1, "aes: `from` and `to` overlap");
}

// Makes the tasks of one buffer.
struct cutter {
  const aes_options& options;
  const aes_schedule& schedule;
  const aes_counter& counter;
  const std::uint8_t* from;
  std::uint8_t* to;

  lev::descriptor make(std::size_t first_block, std::size_t end_block) const {
    lev::descriptor d = options.mode == aes_mode::ecb ? make_ecb(first_block, end_block)
                                                      : make_ctr(first_block, end_block);
    if (!options.dice) {
      for (lev::argument& a : d.arguments) {
        a.flags &= static_cast<std::uint8_t>(~lev::argument_sliced);
      }
    }
    return d;
  }

 private:
  lev::descriptor make_ecb(std::size_t first, std::size_t end) const {
    const auto* plain = reinterpret_cast<const block*>(from);
    auto* encrypted = reinterpret_cast<block*>(to);
    const std::size_t all = options.bytes / sizeof(block);
    lev::descriptor d;
    if (options.form == aes_form::far) {
      d = lev::pack(far_ecb_procedure, how{options.kernel, options.chunk_bytes, options.buffers},
                    lev::view(&schedule, 1), lev::range{first, end}, lev::view(plain, all),
                    lev::view(encrypted, all));
    } else {
      d = lev::pack(ecb_procedure, options.kernel, lev::view(&schedule, 1),
                    lev::sliced(lev::view(plain + first, end - first)),
                    lev::sliced(lev::view(encrypted + first, end - first)));
    }
    d.grain = grain_bytes / sizeof(block);
    return d;
  }

  lev::descriptor make_ctr(std::size_t first_block, std::size_t end_block) const {
    const std::size_t first = first_block * aes_block_bytes;
    const std::size_t end = std::min(end_block * aes_block_bytes, options.bytes);
    lev::descriptor d;
    if (options.form == aes_form::far) {
      d = lev::pack(far_ctr_procedure, how{options.kernel, options.chunk_bytes, options.buffers},
                    lev::view(&schedule, 1), counter, lev::range{first, end},
                    lev::view(from, options.bytes), lev::view(to, options.bytes));
    } else {
      d = lev::pack(ctr_procedure, options.kernel, lev::view(&schedule, 1), counter,
                    lev::range{first, end}, lev::sliced(lev::view(from + first, end - first)),
                    lev::sliced(lev::view(to + first, end - first)));
    }
    d.grain = grain_bytes;
    return d;
  }
};

}  // namespace

bool aes_has(aes_kernel kernel) noexcept {
#ifdef LEVERET_APPS_OPENSSL
  return kernel == aes_kernel::portable || kernel == aes_kernel::openssl;
#else
  return kernel == aes_kernel::portable;
#endif
}

void aes_encrypt(lev::runtime& runtime, const aes_options& options, const aes_key& key,
                 const aes_counter& counter, const std::uint8_t* from, std::uint8_t* to) {
  check(runtime, options, from, to);
  if (options.bytes == 0) return;
  const aes_schedule schedule = aes_expand(key);
  const cutter cut{options, schedule, counter, from, to};
  const std::size_t blocks = (options.bytes + aes_block_bytes - 1) / aes_block_bytes;
  const std::size_t count = std::clamp<std::size_t>(options.tasks, 1, blocks);
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    task = cut.make(blocks * i / count, blocks * (i + 1) / count);
  };
  drained(runtime, [&] { runtime.submit_bulk(count, make).wait(); });
}

void aes_serial(aes_mode mode, const aes_key& key, const aes_counter& counter,
                const std::uint8_t* from, std::size_t bytes, std::uint8_t* to) {
  check_size(mode, bytes);
  aes_run(aes_kernel::portable, mode, aes_expand(key), counter, 0, from, bytes, to);
}

aes_report run_aes(lev::runtime& runtime, const aes_options& options) {
  random_numbers random(options.seed);
  const auto random_byte = [&] { return static_cast<std::uint8_t>(random.next() * 256); };
  aes_key key;
  aes_counter counter;
  for (std::uint8_t& b : key.bytes) b = random_byte();
  for (std::uint8_t& b : counter.bytes) b = random_byte();
  std::vector<std::uint8_t> from(options.bytes);
  std::vector<std::uint8_t> to(options.bytes);
  for (std::uint8_t& b : from) b = random_byte();

  aes_report report;
  const std::uint64_t tasks_before = runtime.count().submitted;
  report.seconds = machine_seconds(
      runtime, [&] { aes_encrypt(runtime, options, key, counter, from.data(), to.data()); });
  report.tasks = runtime.count().submitted - tasks_before;
  if (!options.check) return report;

  std::vector<std::uint8_t> expected(options.bytes);
  report.serial_seconds = host_seconds(
      [&] { aes_serial(options.mode, key, counter, from.data(), from.size(), expected.data()); });
  for (std::size_t i = 0; i < to.size(); ++i) report.error += to[i] != expected[i];
  report.correct = report.error == 0;
  return report;
}

}  // namespace leveret_apps
