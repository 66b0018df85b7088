// AES-128 (FIPS 197) over a large buffer as tasks: in electronic codebook mode (ECB), or in counter
// mode (CTR; SP 800-38A, sections 6.1 and 6.5).
//
// The portable kernel looks words up in tables, so its time depends on key and data. A process that
// shares a cache with it may learn them: this is a workload, not a means to keep secrets.
//
// Paper: CellMT, Listings 1 to 3 and section 5.4 (AES-ECB of IBM's SDK, 13 cycles a byte).
#pragma once

#include <cstddef>
#include <cstdint>
#include <leveret/leveret.hpp>

namespace leveret_apps {

constexpr std::size_t aes_block_bytes = 16;
constexpr std::size_t aes_chunk_bytes_max = 16384;  // the largest DMA of the paper's figures

enum class aes_mode : std::uint32_t {
  ecb,  // block by block, the same for equal blocks; whole blocks only
  ctr,  // the counter, encrypted, is added to the data; any number of bytes; decrypts as well
};
enum class aes_kernel : std::uint32_t {
  portable,  // Leveret's own, by tables
  openssl,   // libcrypto's, when it was found at build time
};
enum class aes_form : std::uint32_t {
  declared,  // the data is declared as in and out: the pipeline stages it
  far,       // the data is far memory: tasks get and put chunks, as in the paper
};

struct aes_key {
  std::uint8_t bytes[16];
};
// The counter of a buffer's first block. Block i has this plus i, as one number of 128 bits, the
// most significant byte first.
struct aes_counter {
  std::uint8_t bytes[16];
};

struct aes_options {
  std::size_t bytes = std::size_t{16} << 20;
  aes_mode mode = aes_mode::ctr;
  aes_kernel kernel = aes_kernel::portable;
  aes_form form = aes_form::declared;
  unsigned tasks = 256;         // at least 1; no more than there are blocks are made
  unsigned chunk_bytes = 1024;  // of the far form: of one get; 16 to aes_chunk_bytes_max
  unsigned buffers = 1;         // of the far form: 1 to 16; 2: double buffering by hand
  bool dice = true;
  std::uint64_t seed = 1;  // of key, counter and data
  bool check = true;       // compare with aes_serial()
};

// aes_has() says whether a kernel was built. Thread safe.
bool aes_has(aes_kernel kernel) noexcept;

// aes_encrypt() writes options.bytes bytes to `to`. `from` and `to` must not overlap. With the
// portable kernel in CTR the bytes are the same however the buffer is cut.
// Throws lev::error: bad_argument (ECB of a part of a block, chunk_bytes or buffers out of bounds),
// overlap, unavailable (the kernel was not built), not_supported (the far form on a machine whose
// tasks cannot get), and what submit() throws: too_big for a task that is larger than the local
// store and not diced. Waits for all tasks. Thread safe.
void aes_encrypt(lev::runtime& runtime, const aes_options& options, const aes_key& key,
                 const aes_counter& counter, const std::uint8_t* from, std::uint8_t* to);

// aes_serial() is the reference: the portable kernel, from the first block to the last. Throws
// lev::error: bad_argument (ECB of a part of a block).
void aes_serial(aes_mode mode, const aes_key& key, const aes_counter& counter,
                const std::uint8_t* from, std::size_t bytes, std::uint8_t* to);

struct aes_report {
  double seconds = 0;         // by the machine's clock: virtual on `sim`
  double serial_seconds = 0;  // aes_serial(), by this computer's clock; 0 when not checked
  double error = 0;           // bytes that differ
  bool correct = false;       // checked, and no byte differs
  std::uint64_t tasks = 0;    // accepted by the runtime, pieces of diced ones included
};

// run_aes() encrypts random bytes. Throws as aes_encrypt() does, and std::bad_alloc.
aes_report run_aes(lev::runtime& runtime, const aes_options& options);

}  // namespace leveret_apps
