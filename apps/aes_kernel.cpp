// AES-128 by tables, one block at a time (FIPS 197).
//
// A state is four words, one per column. In a round, each byte of a new column is what the S-box
// and MixColumns make of a byte of another column: one table look-up for each byte, whose four
// words are added. The tables come from the field's arithmetic, at compile time.
#include "aes_kernel.hpp"

#include <algorithm>
#include <array>

namespace leveret_apps {
namespace {

using byte = std::uint8_t;
using word = std::uint32_t;

// The field of 256 elements: polynomials modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 4.2).
constexpr byte twice(byte a) {
  return static_cast<byte>(a << 1 ^ (a >> 7) * 0x1b);
}

constexpr byte rotate(byte a, int by) {
  return static_cast<byte>(a << by | a >> (8 - by));
}

// Every element but 0 is a power of x + 1, so inverses are found by counting exponents down.
constexpr std::array<byte, 256> make_box() {
  std::array<byte, 256> power{};
  std::array<int, 256> exponent{};
  byte a = 1;
  for (int e = 0; e < 255; ++e) {
    power[static_cast<unsigned>(e)] = a;
    exponent[a] = e;
    a = static_cast<byte>(a ^ twice(a));
  }
  std::array<byte, 256> box{};
  for (unsigned v = 0; v < 256; ++v) {
    const byte inverse = v == 0 ? byte{0} : power[static_cast<unsigned>(255 - exponent[v]) % 255];
    byte s = 0x63;
    for (int by = 0; by < 5; ++by) s = static_cast<byte>(s ^ rotate(inverse, by));
    box[v] = s;
  }
  return box;
}
constexpr std::array<byte, 256> box = make_box();

// Table r is for bytes of row r: the column that MixColumns makes of a byte there.
constexpr std::array<std::array<word, 256>, 4> make_tables() {
  std::array<std::array<word, 256>, 4> tables{};
  for (unsigned v = 0; v < 256; ++v) {
    const byte s = box[v];
    const byte s2 = twice(s);
    const word column = word{s2} << 24 | word{s} << 16 | word{s} << 8 | static_cast<byte>(s2 ^ s);
    for (unsigned r = 0; r < 4; ++r)
      tables[r][v] = r == 0 ? column : column >> 8 * r | column << (32 - 8 * r);
  }
  return tables;
}
constexpr std::array<std::array<word, 256>, 4> tables = make_tables();

constexpr int rounds = 10;

word load(const byte* from) {
  return word{from[0]} << 24 | word{from[1]} << 16 | word{from[2]} << 8 | from[3];
}

void store(word w, byte* to) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<byte>(w >> (24 - 8 * i));
}

word substitute(word a, word b, word c, word d) {
  return word{box[a >> 24]} << 24 | word{box[b >> 16 & 0xff]} << 16 |
         word{box[c >> 8 & 0xff]} << 8 | box[d & 0xff];
}

word mix(word a, word b, word c, word d) {
  return tables[0][a >> 24] ^ tables[1][b >> 16 & 0xff] ^ tables[2][c >> 8 & 0xff] ^
         tables[3][d & 0xff];
}

struct state {
  word a, b, c, d;
};

state encrypt(const word* key, state s) {
  s = {s.a ^ key[0], s.b ^ key[1], s.c ^ key[2], s.d ^ key[3]};
  for (int round = 1; round < rounds; ++round) {
    key += 4;
    s = {mix(s.a, s.b, s.c, s.d) ^ key[0], mix(s.b, s.c, s.d, s.a) ^ key[1],
         mix(s.c, s.d, s.a, s.b) ^ key[2], mix(s.d, s.a, s.b, s.c) ^ key[3]};
  }
  key += 4;
  return {substitute(s.a, s.b, s.c, s.d) ^ key[0], substitute(s.b, s.c, s.d, s.a) ^ key[1],
          substitute(s.c, s.d, s.a, s.b) ^ key[2], substitute(s.d, s.a, s.b, s.c) ^ key[3]};
}

void encrypt_block(const aes_schedule& schedule, const byte* from, byte* to) {
  const state s =
      encrypt(schedule.words, {load(from), load(from + 4), load(from + 8), load(from + 12)});
  store(s.a, to);
  store(s.b, to + 4);
  store(s.c, to + 8);
  store(s.d, to + 12);
}

void run_ctr(const aes_schedule& schedule, const aes_counter& counter, std::uint64_t offset,
             const byte* from, std::size_t bytes, byte* to) {
  aes_counter at = aes_counter_at(counter, offset / aes_block_bytes);
  std::size_t skipped = offset % aes_block_bytes;  // of the first block
  while (bytes != 0) {
    byte pad[aes_block_bytes];
    encrypt_block(schedule, at.bytes, pad);
    const std::size_t count = std::min(bytes, aes_block_bytes - skipped);
    if (count == aes_block_bytes) {
      for (std::size_t i = 0; i < aes_block_bytes; ++i) to[i] = static_cast<byte>(from[i] ^ pad[i]);
    } else {
      for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<byte>(from[i] ^ pad[skipped + i]);
    }
    skipped = 0;
    from += count;
    to += count;
    bytes -= count;
    at = aes_counter_at(at, 1);
  }
}

}  // namespace

aes_schedule aes_expand(const aes_key& key) noexcept {
  aes_schedule schedule;
  word* const w = schedule.words;
  for (int i = 0; i < 4; ++i) w[i] = load(key.bytes + 4 * i);
  byte constant = 1;
  for (int i = 4; i < 44; ++i) {
    word next = w[i - 1];
    if (i % 4 == 0) {
      next = next << 8 | next >> 24;
      next = substitute(next, next, next, next) ^ word { constant } << 24;
      constant = twice(constant);
    }
    w[i] = w[i - 4] ^ next;
  }
  return schedule;
}

aes_counter aes_counter_at(const aes_counter& first, std::uint64_t index) noexcept {
  aes_counter sum = first;
  for (int i = aes_block_bytes - 1; i >= 0 && index != 0; --i) {
    const std::uint64_t low = sum.bytes[i] + (index & 0xff);
    sum.bytes[i] = static_cast<byte>(low);
    index = (index >> 8) + (low >> 8);
  }
  return sum;
}

void aes_run(aes_kernel kernel, aes_mode mode, const aes_schedule& schedule,
             const aes_counter& counter, std::uint64_t offset, const std::uint8_t* from,
             std::size_t bytes, std::uint8_t* to) {
#ifdef LEVERET_APPS_OPENSSL
  if (kernel == aes_kernel::openssl)
    return aes_run_openssl(mode, schedule, counter, offset, from, bytes, to);
#endif
  static_cast<void>(kernel);
  if (mode == aes_mode::ctr) return run_ctr(schedule, counter, offset, from, bytes, to);
  for (std::size_t i = 0; i < bytes; i += aes_block_bytes) {
    encrypt_block(schedule, from + i, to + i);
  }
}

}  // namespace leveret_apps
