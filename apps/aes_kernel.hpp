// The kernels of AES-128: what a task does with the bytes it has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "leveret_apps/aes.hpp"

namespace leveret_apps {

// The round keys, as words with the most significant byte first; the first four are the key.
struct aes_schedule {
  std::uint32_t words[44];
};
aes_schedule aes_expand(const aes_key& key) noexcept;

// aes_run() encrypts `bytes` bytes, which are `offset` bytes from the buffer's start. In ECB both
// numbers are whole blocks. `from` and `to` are the same or do not overlap. The kernel is one that
// aes_has(). Throws std::bad_alloc: OpenSSL has no memory.
void aes_run(aes_kernel kernel, aes_mode mode, const aes_schedule& schedule,
             const aes_counter& counter, std::uint64_t offset, const std::uint8_t* from,
             std::size_t bytes, std::uint8_t* to);

// aes_counter_at() is the counter of block `index`.
aes_counter aes_counter_at(const aes_counter& first, std::uint64_t index) noexcept;

// The same by libcrypto; defined only where it was found.
void aes_run_openssl(aes_mode mode, const aes_schedule& schedule, const aes_counter& counter,
                     std::uint64_t offset, const std::uint8_t* from, std::size_t bytes,
                     std::uint8_t* to);

}  // namespace leveret_apps
