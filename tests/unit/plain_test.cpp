// Tests of the short checks of plain tasks: what they let pass, validate() lets pass, too, and what
// they refuse it looks at.
#include <leveret/procedure.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "task/plain.hpp"
#include "task/validate.hpp"

namespace lev {
namespace {

constexpr kind row_kinds[] = {kind::in, kind::out, kind::inout, kind::result};

procedure_id procedure_of_kinds(const std::vector<kind>& kinds) {
  std::string name = "unit.plain.";
  for (const kind k : kinds) name += static_cast<char>('0' + static_cast<int>(k));
  if (const procedure_id id = lookup(name.c_str()); id != 0) return id;
  procedure_info info;
  info.name = name.c_str();
  info.run = [](const call&) { return 0; };
  info.kinds = kinds.data();
  info.kind_count = static_cast<unsigned>(kinds.size());
  procedure_id id = 0;
  EXPECT_EQ(register_procedure(info, &id), status::ok);
  return id;
}

argument place_argument(kind what, std::uint64_t address, std::uint64_t bytes) {
  argument a;
  a.what = what;
  a.address = address;
  a.row_bytes = bytes;
  a.stride_bytes = static_cast<std::int64_t>(bytes);
  a.unit_bytes = what == kind::result ? static_cast<std::uint16_t>(bytes) : std::uint16_t{1};
  return a;
}

// Compares the two for a task with these places.
void compare(const std::vector<kind>& kinds, const std::vector<argument>& arguments) {
  const procedure_id id = procedure_of_kinds(kinds);
  const detail::draft d{{id, static_cast<std::uint8_t>(kinds.size())}, arguments.data()};
  const procedure_entry& p = procedure_at(id);
  draft_facts facts;
  refusal why;
  const bool is_good = validate(d, &facts, &why);
  ASSERT_NE(p.placed_kinds, plain_kinds_never);
  EXPECT_EQ(are_places_plain(d.arguments, p.places), is_good)
      << p.name << ": " << why.message << " " << arguments[0].address << "+"
      << arguments[0].row_bytes;
  EXPECT_EQ(passes_plainly(d, p, p.placed_kinds), is_good) << p.name;
}

// All places of one to three bytes near each other.
std::vector<argument> near_places(kind what) {
  std::vector<argument> all;
  for (std::uint64_t address = 0x1000; address < 0x1005; ++address) {
    for (std::uint64_t bytes = 1; bytes <= 3; ++bytes)
      all.push_back(place_argument(what, address, bytes));
  }
  return all;
}

TEST(plain_places, two_are_compared_as_validate_does) {
  for (const kind first : row_kinds) {
    for (const kind second : row_kinds) {
      for (const argument& a : near_places(first)) {
        for (const argument& b : near_places(second)) compare({first, second}, {a, b});
      }
    }
  }
}

TEST(plain_places, three_are_compared_wherever_they_stand_among_values) {
  const argument value = detail::parameter<int>::pack(7);
  for (const kind first : row_kinds) {
    for (const kind second : row_kinds) {
      for (const kind third : row_kinds) {
        for (const argument& b : near_places(second)) {
          const argument a = place_argument(first, 0x1001, 2);
          const argument c = place_argument(third, 0x1003, 2);
          compare({first, second, third}, {a, b, c});
          compare({kind::value, second, first, kind::value, third}, {value, b, a, value, c});
        }
      }
    }
  }
}

TEST(plain_places, ends_of_the_address_space_are_left_to_validate) {
  const procedure_id id = procedure_of_kinds({kind::in});
  const place_plan& plan = procedure_at(id).places;
  const auto passes = [&](std::uint64_t address, std::uint64_t bytes) {
    const argument a = place_argument(kind::in, address, bytes);
    return are_places_plain(&a, plan);
  };
  EXPECT_TRUE(passes(1, 1));
  EXPECT_TRUE(passes(payload_max, payload_max));
  EXPECT_FALSE(passes(0, 8));
  EXPECT_FALSE(passes(8, 0));
  EXPECT_FALSE(passes(payload_max + 1, 1));
  EXPECT_FALSE(passes(1, payload_max + 1));
  EXPECT_FALSE(passes(~std::uint64_t{0}, 2));
  EXPECT_FALSE(passes(8, ~std::uint64_t{0}));
}

TEST(plain_places, kinds_of_calls_are_those_of_their_procedures) {
  const auto kinds_at = [](const char* name) -> const procedure_entry& {
    return procedure_at(lookup(name));
  };
  define("unit.plain.rows", [](in<float>, out<float>, float) {});
  const procedure_entry& rows = kinds_at("unit.plain.rows");
  EXPECT_EQ(rows.plain_kinds, plain_kinds_never);
  EXPECT_EQ(rows.placed_kinds, (detail::plain_kinds<in<float>, out<float>, float>));
  define("unit.plain.one_result", [](int, result<int>) {});
  const procedure_entry& one = kinds_at("unit.plain.one_result");
  EXPECT_EQ(one.plain_kinds, (detail::plain_kinds<int, result<int>>));
  EXPECT_EQ(one.placed_kinds, plain_kinds_never);
  define("unit.plain.two_results", [](result<int>, result<int>) {});
  const procedure_entry& two = kinds_at("unit.plain.two_results");
  EXPECT_EQ(two.plain_kinds, plain_kinds_never);
  EXPECT_EQ(two.placed_kinds, (detail::plain_kinds<result<int>, result<int>>));
  define("unit.plain.four_rows", [](in<int>, in<int>, in<int>, in<int>) {});
  const procedure_entry& four = kinds_at("unit.plain.four_rows");
  EXPECT_EQ(four.placed_kinds, plain_kinds_never);
  EXPECT_EQ((detail::plain_kinds<in<int>, in<int>, in<int>, in<int>>), 0u);
  define("unit.plain.range", [](range) {});
  EXPECT_EQ(kinds_at("unit.plain.range").placed_kinds, plain_kinds_never);
}

// A call says of its arguments what their types leave open.
template <class... Parameters, class... Arguments>
std::uint64_t kinds_of(Arguments&&... arguments) {
  const argument packed[] = {
      detail::parameter<Parameters>::pack(static_cast<Arguments&&>(arguments))...};
  return detail::plain_kinds_of_call<Parameters...>(packed);
}

struct alignas(256) wide {
  char bytes[256];
};

TEST(plain_places, a_call_with_rows_that_need_a_look_says_so) {
  float values[16] = {};
  wide far_apart[2] = {};
  constexpr std::uint64_t plain = detail::plain_kinds<in<float>>;
  EXPECT_EQ(kinds_of<in<float>>(values), plain);
  EXPECT_EQ(kinds_of<in<float>>(lev::view(values, 8)), plain);
  EXPECT_EQ(kinds_of<in<float>>(lev::strided(values, 4, 2, 4)), 0u);
  EXPECT_EQ(kinds_of<in<float>>(lev::strided(values, 1, 2, 4)), 0u);
  EXPECT_EQ(kinds_of<in<float>>(lev::sliced(values)), 0u);
  EXPECT_EQ(kinds_of<far<const float>>(values), 0u);
  EXPECT_EQ(kinds_of<in<wide>>(far_apart), 0u);
  EXPECT_EQ(kinds_of<float>(1.0f), detail::plain_kinds<float>);
}

}  // namespace
}  // namespace lev
