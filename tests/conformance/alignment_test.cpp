// Conformance: copied arguments lie where their elements want them, whatever else the task has.
#include <gtest/gtest.h>
#include <leveret/leveret.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

constexpr std::size_t aligned_store_bytes = 64 << 10;

class alignment_test : public machine_test {
 protected:
  static config small_settings() {
    config c = settings();
    c.local_store_bytes = aligned_store_bytes;
    c.staging = staging::copy;
    return c;
  }
};
LEV_ON_EVERY_MACHINE(alignment_test);

template <std::size_t Alignment>
struct alignas(Alignment) aligned {
  std::uint64_t number = 0;
};

std::size_t beyond(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment;
}

// Says how far beyond their alignment its arguments are. The small ones push the others off it.
template <std::size_t Alignment>
const auto look_by = define(
    ("alignment.look" + std::to_string(Alignment)).c_str(),
    +[](in<char>, in<aligned<Alignment>> a, in<char>, inout<aligned<Alignment>> b, result<char>,
        out<aligned<Alignment>> c, result<std::size_t> off) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        b[i].number += a[i].number;
        c[i].number = b[i].number;
      }
      off = beyond(a.data(), Alignment) + beyond(b.data(), Alignment) + beyond(c.data(), Alignment);
    });

template <std::size_t Alignment>
void look_at(runtime& r) {
  using element = aligned<Alignment>;
  const std::vector<char> small(65);
  constexpr std::size_t tasks = 12;
  std::vector<std::vector<element>> a(tasks, std::vector<element>(2, element{3}));
  std::vector<std::vector<element>> b(tasks, std::vector<element>(2, element{4}));
  std::vector<std::vector<element>> c(tasks, std::vector<element>(2));
  char none[tasks] = {};
  std::size_t off[tasks] = {};
  for (std::size_t i = 0; i < tasks; ++i)
    r.post(look_by<Alignment>, small, a[i], view(small.data(), 1 + i), b[i], none[i], c[i], off[i]);
  EXPECT_EQ(r.wait_for_completion(60'000'000'000).code, status::ok);
  for (std::size_t i = 0; i < tasks; ++i) {
    EXPECT_EQ(off[i], 0u) << Alignment;
    for (const element& e : c[i]) EXPECT_EQ(e.number, 7u) << Alignment;
  }
}

LEV_TEST(alignment_test, elements_of_every_alignment) {
  runtime& r = open(small_settings());
  look_at<8>(r);
  look_at<64>(r);
  look_at<128>(r);
  look_at<256>(r);
  look_at<512>(r);
  look_at<1024>(r);
  look_at<2048>(r);
  look_at<4096>(r);
}

// Cut into pieces, packed rows, and what is larger than the store.
const auto look_at_rows =
    define("alignment.look_at_rows", [](inout<aligned<512>> x, out<std::size_t> off) {
      for (std::size_t r = 0; r < x.rows(); ++r) {
        off[r] = beyond(x.row(r), 512);
        for (std::size_t i = 0; i < x.row_size(); ++i) ++x.row(r)[i].number;
      }
    });

LEV_TEST(alignment_test, rows_and_pieces) {
  for (const std::uint32_t tickets : {2u, 256u}) {
    config c = small_settings();
    c.tickets = tickets;
    runtime& r = open(c);
    constexpr std::size_t rows = 100;
    constexpr std::size_t width = 3;
    constexpr std::size_t pitch = 5;
    std::vector<aligned<512>> x(rows * pitch);
    std::vector<std::size_t> off(rows, 1);
    expect_ok(r.submit(look_at_rows, sliced(strided(x.data(), rows, width, pitch)), sliced(off)));
    EXPECT_EQ(off, std::vector<std::size_t>(rows, 0));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i].number, i % pitch < width ? 1u : 0u);
  }
}

// A task on top of one whose data fills the store gets memory of its own, aligned likewise.
LEV_TEST(alignment_test, above_a_full_store) {
  LEV_SKIP_IF_REMOTE();
  static const auto above = define("alignment.above", [](ref<runtime> r, inout<char> x) {
    x[0] = 1;
    const std::vector<char> small(65);
    std::vector<aligned<4096>> a(1, aligned<4096>{3});
    std::vector<aligned<4096>> b(1, aligned<4096>{4});
    std::vector<aligned<4096>> c(1);
    char none = 0;
    std::size_t off = 1;
    r.to->submit(look_by<4096>, small, a, view(small.data(), 1), b, none, c, off).wait();
    EXPECT_EQ(off, 0u);
    EXPECT_EQ(c[0].number, 7u);
  });
  runtime& r = open(small_settings());
  std::vector<char> x(aligned_store_bytes - 256);
  for (int i = 0; i < 5; ++i) expect_ok(r.submit(above, ref{&r}, x));
}

int look_in_c(const lev_call* c) {
  return static_cast<int>(beyond(reinterpret_cast<const void*>(c->arguments[1].address), 1024));
}

LEV_TEST(alignment_test, a_c_call_says_it_by_a_flag) {
  const lev_kind kinds[] = {LEV_IN, LEV_IN};
  static lev_procedure_id id = 0;
  if (id == 0) lev_register("alignment.c", &look_in_c, nullptr, kinds, 2, &id);
  lev_options o = {};
  o.machine = GetParam().machine;
  o.workers = 1;
  o.staging = LEV_STAGING_COPY;
  lev_runtime* r = nullptr;
  ASSERT_EQ(lev_open(&o, &r), LEV_OK) << lev_last_message();
  const char small[65] = {};
  const std::vector<aligned<1024>> x(2);
  lev_argument arguments[] = {lev_memory(LEV_IN, small, 1, sizeof small),
                              lev_memory(LEV_IN, x.data(), 1024, 2)};
  arguments[1].flags |= LEV_ALIGN_1024;
  lev_ticket t = 0;
  ASSERT_EQ(lev_submit(r, id, arguments, 2, &t), LEV_OK) << lev_last_message();
  EXPECT_EQ(lev_wait(r, t, wait_limit_ns(), nullptr), LEV_OK);
  arguments[1].flags = 7 << 3;  // no such alignment
  EXPECT_EQ(lev_submit(r, id, arguments, 2, &t), LEV_BAD_ARGUMENT);
  arguments[1].flags = LEV_FAR | LEV_ALIGN_256;  // a get()'s buffer has 128
  EXPECT_EQ(lev_submit(r, id, arguments, 2, &t), LEV_BAD_ARGUMENT);
  EXPECT_EQ(lev_close(r), LEV_OK);
}

int double_packed(const call& c) {
  const argument& a = c.arguments[0];
  if (beyond(reinterpret_cast<const void*>(a.address), copied_alignment) != 0) return 1;
  auto* numbers = reinterpret_cast<std::uint64_t*>(a.address);
  for (std::uint64_t i = 0; i < a.row_bytes / sizeof *numbers; ++i) numbers[i] *= 2;
  return 0;
}

// Elements at an odd address: the task finds them aligned, and writes them back where they were.
LEV_TEST(alignment_test, what_is_to_be_packed_is) {
  constexpr kind declared[] = {kind::inout};
  static procedure_id id = 0;
  if (id == 0) {
    procedure_info info;
    info.name = "alignment.packed";
    info.run = &double_packed;
    info.kinds = declared;
    info.kind_count = 1;
    ASSERT_EQ(register_procedure(info, &id), status::ok);
  }
  for (const staging how : {staging::automatic, staging::in_place, staging::copy}) {
    config c = small_settings();
    c.staging = how;
    runtime r(c);
    constexpr std::uint64_t numbers[] = {3, 4, 5};
    unsigned char memory[sizeof numbers + 1];
    std::memcpy(memory + 1, numbers, sizeof numbers);
    descriptor d;
    d.procedure = id;
    d.argument_count = 1;
    argument& a = d.arguments[0];
    a.what = kind::inout;
    a.address = reinterpret_cast<std::uintptr_t>(memory + 1);
    a.row_bytes = sizeof numbers;
    a.stride_bytes = sizeof numbers;
    a.unit_bytes = sizeof numbers[0];
    a.flags = argument_packed;
    r.submit(d).wait();
    std::uint64_t doubled[3];
    std::memcpy(doubled, memory + 1, sizeof doubled);
    EXPECT_EQ(doubled[0] + doubled[1] + doubled[2], 24u);
  }
}

}  // namespace
}  // namespace lev::test
