// AES: the kernels against the standards' examples, and tasks against the serial reference.
#include <leveret_apps/aes.hpp>
#include <vector>

#include "app_fixture.hpp"

using leveret_apps::aes_counter;
using leveret_apps::aes_form;
using leveret_apps::aes_kernel;
using leveret_apps::aes_key;
using leveret_apps::aes_mode;
using leveret_apps::aes_options;

namespace {

using bytes = std::vector<std::uint8_t>;

unsigned digit(char c) {
  return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
}
bytes from_hex(const char* text) {
  bytes b;
  for (; *text != 0; text += 2)
    b.push_back(static_cast<std::uint8_t>(digit(text[0]) * 16 + digit(text[1])));
  return b;
}
template <class T>
T block_of(const char* text) {
  T t{};
  const bytes b = from_hex(text);
  std::copy(b.begin(), b.end(), t.bytes);
  return t;
}

bytes serial(aes_mode mode, const aes_key& key, const aes_counter& counter, const bytes& from) {
  bytes to(from.size());
  aes_serial(mode, key, counter, from.data(), from.size(), to.data());
  return to;
}

// SP 800-38A, appendix F: one plain text for all.
constexpr const char* f_key = "2b7e151628aed2a6abf7158809cf4f3c";
constexpr const char* f_counter = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
constexpr const char* f_plain =
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
constexpr const char* f_ecb =  // F.1.1
    "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"
    "43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4";
constexpr const char* f_ctr =  // F.5.1
    "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
    "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee";

TEST(aes_kernel, makes_the_cipher_text_of_fips_197) {
  // Appendices B and C.1.
  EXPECT_EQ(serial(aes_mode::ecb, block_of<aes_key>(f_key), {},
                   from_hex("3243f6a8885a308d313198a2e0370734")),
            from_hex("3925841d02dc09fbdc118597196a0b32"));
  EXPECT_EQ(serial(aes_mode::ecb, block_of<aes_key>("000102030405060708090a0b0c0d0e0f"), {},
                   from_hex("00112233445566778899aabbccddeeff")),
            from_hex("69c4e0d86a7b0430d8cdb78070b4c55a"));
}

TEST(aes_kernel, makes_the_cipher_texts_of_sp_800_38a) {
  const auto key = block_of<aes_key>(f_key);
  const auto counter = block_of<aes_counter>(f_counter);
  EXPECT_EQ(serial(aes_mode::ecb, key, {}, from_hex(f_plain)), from_hex(f_ecb));
  EXPECT_EQ(serial(aes_mode::ctr, key, counter, from_hex(f_plain)), from_hex(f_ctr));
  EXPECT_EQ(serial(aes_mode::ctr, key, counter, from_hex(f_ctr)), from_hex(f_plain));  // F.5.2
}

TEST(aes_kernel, counts_over_all_sixteen_bytes) {
  // The counter's key stream, block by block: what ECB makes of the counters.
  const auto key = block_of<aes_key>(f_key);
  const bytes zeros(48, 0);
  EXPECT_EQ(
      serial(aes_mode::ctr, key, block_of<aes_counter>("ffffffffffffffffffffffffffffffff"), zeros),
      serial(aes_mode::ecb, key, {},
             from_hex("ffffffffffffffffffffffffffffffff"
                      "00000000000000000000000000000000"
                      "00000000000000000000000000000001")));
  EXPECT_EQ(serial(aes_mode::ctr, key, block_of<aes_counter>("00000000000000ffffffffffffffffff"),
                   bytes(32, 0)),
            serial(aes_mode::ecb, key, {},
                   from_hex("00000000000000ffffffffffffffffff"
                            "00000000000001000000000000000000")));
}

TEST(aes_kernel, refuses_a_part_of_a_block_in_ecb) {
  EXPECT_THROW(serial(aes_mode::ecb, {}, {}, bytes(17)), lev::error);
}

class aes_test : public app_test {
 protected:
  bytes encrypt(const aes_options& o, const bytes& from) {
    bytes to(from.size(), 0x5a);
    aes_encrypt(runtime(), o, key_, counter_, from.data(), to.data());
    return to;
  }
  aes_options options(aes_mode mode, aes_form form, std::size_t size) const {
    aes_options o;
    o.bytes = size;
    o.mode = mode;
    o.form = form;
    o.dice = dice();
    return o;
  }
  static bytes data(std::size_t size) {
    bytes b(size);
    std::uint32_t state = 1;
    for (std::uint8_t& x : b) x = static_cast<std::uint8_t>((state = state * 1664525 + 7) >> 24);
    return b;
  }
  lev::status refused(const aes_options& o) {
    bytes from(o.bytes);
    bytes to(o.bytes);
    try {
      aes_encrypt(runtime(), o, key_, counter_, from.data(), to.data());
      return lev::status::ok;
    } catch (const lev::error& e) {
      return e.code();
    }
  }
  const aes_key key_ = block_of<aes_key>(f_key);
  const aes_counter counter_ = block_of<aes_counter>("00000000000000fffffffffffffffffe");
};
INSTANTIATE_TEST_SUITE_P(machines, aes_test, every_case, case_name);

TEST_P(aes_test, ctr_is_the_same_however_it_is_cut) {
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 1000u, 100003u}) {
    const bytes from = data(size);
    const bytes expected = serial(aes_mode::ctr, key_, counter_, from);
    for (const aes_form form : {aes_form::declared, aes_form::far}) {
      for (const unsigned tasks : {0u, 1u, 3u, 64u}) {
        aes_options o = options(aes_mode::ctr, form, size);
        o.tasks = tasks;
        o.chunk_bytes = 48;
        EXPECT_EQ(encrypt(o, from), expected) << size << " bytes, " << tasks << " tasks";
      }
    }
  }
}

TEST_P(aes_test, ecb_equals_serial) {
  for (const std::size_t size : {0u, 16u, 4096u, 100016u}) {
    const bytes from = data(size);
    const bytes expected = serial(aes_mode::ecb, key_, counter_, from);
    for (const aes_form form : {aes_form::declared, aes_form::far}) {
      for (const unsigned tasks : {1u, 5u, 100u}) {
        aes_options o = options(aes_mode::ecb, form, size);
        o.tasks = tasks;
        EXPECT_EQ(encrypt(o, from), expected) << size << " bytes, " << tasks << " tasks";
      }
    }
  }
}

TEST_P(aes_test, any_number_of_buffers_will_do) {
  const bytes from = data(10007);
  const bytes expected = serial(aes_mode::ctr, key_, counter_, from);
  for (const unsigned buffers : {1u, 2u, 3u, 16u}) {
    for (const unsigned chunk_bytes : {16u, 1024u, 16384u}) {
      aes_options o = options(aes_mode::ctr, aes_form::far, from.size());
      o.tasks = 3;
      o.buffers = buffers;
      o.chunk_bytes = chunk_bytes;
      EXPECT_EQ(encrypt(o, from), expected) << buffers << " buffers of " << chunk_bytes;
    }
  }
}

TEST_P(aes_test, openssl_makes_the_same_bytes) {
  if (!aes_has(aes_kernel::openssl)) GTEST_SKIP() << "built without OpenSSL";
  const bytes from = data(50000);
  for (const aes_mode mode : {aes_mode::ecb, aes_mode::ctr}) {
    for (const aes_form form : {aes_form::declared, aes_form::far}) {
      aes_options o = options(mode, form, from.size());
      o.kernel = aes_kernel::openssl;
      o.tasks = 7;
      EXPECT_EQ(encrypt(o, from), serial(mode, key_, counter_, from));
    }
  }
}

TEST_P(aes_test, run_reports_a_correct_result) {
  for (const aes_form form : {aes_form::declared, aes_form::far}) {
    const auto report = run_aes(runtime(), options(aes_mode::ctr, form, 300001));
    EXPECT_TRUE(report.correct);
    EXPECT_EQ(report.error, 0);
    EXPECT_GT(report.seconds, 0);
    EXPECT_GT(report.serial_seconds, 0);
    EXPECT_GE(report.tasks, 256u);
  }
}

TEST_P(aes_test, bad_options_are_refused) {
  EXPECT_EQ(refused(options(aes_mode::ecb, aes_form::declared, 17)), lev::status::bad_argument);
  for (const unsigned chunk : {0u, 8u, 17u, 16400u}) {
    aes_options o = options(aes_mode::ctr, aes_form::far, 64);
    o.chunk_bytes = chunk;
    EXPECT_EQ(refused(o), lev::status::bad_argument) << chunk;
  }
  for (const unsigned buffers : {0u, 17u}) {
    aes_options o = options(aes_mode::ctr, aes_form::far, 64);
    o.buffers = buffers;
    EXPECT_EQ(refused(o), lev::status::bad_argument) << buffers;
  }
  aes_options o = options(aes_mode::ctr, aes_form::declared, 64);
  o.kernel = aes_kernel::openssl;
  EXPECT_EQ(refused(o), aes_has(aes_kernel::openssl) ? lev::status::ok : lev::status::unavailable);
  bytes both(100);
  EXPECT_THROW(aes_encrypt(runtime(), options(aes_mode::ctr, aes_form::declared, 64), key_,
                           counter_, both.data(), both.data() + 36),
               lev::error);
}

TEST(aes_on_processes, runs_declared_and_refuses_far) {
  if (const char* why = lev::machine_unavailable("processes")) GTEST_SKIP() << why;
  lev::config config;
  config.machine = "processes";
  config.workers = 2;
  lev::runtime runtime(config);
  aes_options o;
  o.bytes = 100003;
  o.tasks = 8;
  EXPECT_TRUE(run_aes(runtime, o).correct);
  o.form = aes_form::far;
  try {
    run_aes(runtime, o);
    FAIL() << "not refused";
  } catch (const lev::error& e) {
    EXPECT_EQ(e.code(), lev::status::not_supported);
  }
}

}  // namespace
