// AES-128 by libcrypto, through its EVP functions.
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <new>

#include "aes_kernel.hpp"

namespace leveret_apps {
namespace {

struct free_cipher {
  void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
};

// libcrypto counts bytes in int.
constexpr std::size_t bytes_max = std::size_t{1} << 30;

// These calls fail only for want of memory: cipher, key and sizes are right.
void must(int result) {
  if (result != 1) throw std::bad_alloc();
}

}  // namespace

void aes_run_openssl(aes_mode mode, const aes_schedule& schedule, const aes_counter& counter,
                     std::uint64_t offset, const std::uint8_t* from, std::size_t bytes,
                     std::uint8_t* to) {
  std::uint8_t key[aes_block_bytes];
  for (unsigned i = 0; i < aes_block_bytes; ++i) {
    key[i] = static_cast<std::uint8_t>(schedule.words[i / 4] >> (24 - i % 4 * 8));
  }
  const std::unique_ptr<EVP_CIPHER_CTX, free_cipher> cipher(EVP_CIPHER_CTX_new());
  if (cipher == nullptr) throw std::bad_alloc();
  int written = 0;
  if (mode == aes_mode::ecb) {
    must(EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_ecb(), nullptr, key, nullptr));
    must(EVP_CIPHER_CTX_set_padding(cipher.get(), 0));
  } else {
    const aes_counter start = aes_counter_at(counter, offset / aes_block_bytes);
    must(EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_ctr(), nullptr, key, start.bytes));
    std::uint8_t unused[aes_block_bytes] = {};  // the part of the first block before `offset`
    must(EVP_EncryptUpdate(cipher.get(), unused, &written, unused,
                           static_cast<int>(offset % aes_block_bytes)));
  }
  while (bytes != 0) {
    const std::size_t count = std::min(bytes, bytes_max);
    must(EVP_EncryptUpdate(cipher.get(), to, &written, from, static_cast<int>(count)));
    from += count;
    to += count;
    bytes -= count;
  }
}

}  // namespace leveret_apps
