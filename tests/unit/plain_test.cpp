// Tests of the short checks of plain tasks: what they let pass, validate() lets pass, too, and what
// they refuse it looks at.
#include <leveret/procedure.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "task/plain.hpp"
#include "task/validate.hpp"

namespace lev {
namespace {

template <kind... Kinds>
procedure_id procedure_of_kinds() {
  std::string name = "unit.plain.";
  for (const kind k : {Kinds...}) name += static_cast<char>('0' + static_cast<int>(k));
  if (const procedure_id id = lookup(name.c_str()); id != 0) return id;
  static constexpr kind kinds[] = {Kinds...};
  procedure_info info;
  info.name = name.c_str();
  info.run = [](const call&) { return 0; };
  info.kinds = kinds;
  info.kind_count = sizeof...(Kinds);
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
template <kind... Kinds>
void compare(const std::vector<argument>& arguments) {
  const procedure_id id = procedure_of_kinds<Kinds...>();
  const detail::draft d{{id, sizeof...(Kinds)}, arguments.data()};
  const procedure_entry& p = procedure_at(id);
  draft_facts facts;
  refusal why;
  const bool is_good = validate(d, &facts, &why);
  EXPECT_NE(p.plain_kinds & detail::plain_kinds_compared, 0u) << p.name;
  EXPECT_EQ(detail::are_places_plain<Kinds...>(d.arguments), is_good)
      << p.name << ": " << why.message << " " << arguments[0].address << "+"
      << arguments[0].row_bytes;
  EXPECT_EQ(passes_plainly(d, p, detail::plain_kinds_unknown), is_good) << p.name;
}

// Calls `look` with each kind of a place.
template <class Look>
void each_kind(Look look) {
  look(std::integral_constant<kind, kind::in>{});
  look(std::integral_constant<kind, kind::out>{});
  look(std::integral_constant<kind, kind::inout>{});
  look(std::integral_constant<kind, kind::result>{});
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

template <kind First, kind Second>
void compare_two() {
  for (const argument& a : near_places(First)) {
    for (const argument& b : near_places(Second)) compare<First, Second>({a, b});
  }
}
template <kind First, kind Second, kind Third>
void compare_three() {
  const argument value = detail::parameter<int>::pack(7);
  const argument a = place_argument(First, 0x1001, 2);
  const argument c = place_argument(Third, 0x1003, 2);
  for (const argument& b : near_places(Second)) {
    compare<First, Second, Third>({a, b, c});
    compare<kind::value, Second, First, kind::value, Third>({value, b, a, value, c});
  }
}

TEST(plain_places, two_are_compared_as_validate_does) {
  each_kind([](auto first) { each_kind([=](auto second) { compare_two<first(), second()>(); }); });
}

TEST(plain_places, three_are_compared_wherever_they_stand_among_values) {
  each_kind([](auto first) {
    each_kind([=](auto second) {
      each_kind([=](auto third) { compare_three<first(), second(), third()>(); });
    });
  });
}

TEST(plain_places, ends_of_the_address_space_are_left_to_validate) {
  const auto passes = [&](std::uint64_t address, std::uint64_t bytes) {
    const argument a = place_argument(kind::in, address, bytes);
    return detail::are_places_plain<kind::in>(&a);
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
  using detail::plain_kinds_compared;
  const auto kinds_at = [](const char* name) {
    return procedure_at(lookup(name)).plain_kinds.load();
  };
  define("unit.plain.rows", [](in<float>, out<float>, float) {});
  EXPECT_EQ(kinds_at("unit.plain.rows"),
            (detail::plain_kinds<in<float>, out<float>, float> | plain_kinds_compared));
  define("unit.plain.one_result", [](int, result<int>) {});
  EXPECT_EQ(kinds_at("unit.plain.one_result"), (detail::plain_kinds<int, result<int>>));
  define("unit.plain.two_results", [](result<int>, result<int>) {});
  EXPECT_EQ(kinds_at("unit.plain.two_results"),
            (detail::plain_kinds<result<int>, result<int>> | plain_kinds_compared));
  define("unit.plain.four_rows", [](in<int>, in<int>, in<int>, in<int>) {});
  EXPECT_EQ(kinds_at("unit.plain.four_rows"), plain_kinds_never);
  EXPECT_EQ((detail::plain_kinds<in<int>, in<int>, in<int>, in<int>>), detail::plain_kinds_unknown);
  define("unit.plain.range", [](range) {});
  EXPECT_EQ(kinds_at("unit.plain.range"), plain_kinds_never);
  EXPECT_EQ(procedures.entries[procedure_count_max].plain_kinds.load(), plain_kinds_never);
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
  constexpr std::uint64_t plain = detail::plain_kinds<in<float>> | detail::plain_kinds_compared;
  constexpr std::uint64_t unknown = detail::plain_kinds_unknown;
  EXPECT_EQ(kinds_of<in<float>>(values), plain);
  EXPECT_EQ(kinds_of<in<float>>(lev::view(values, 8)), plain);
  EXPECT_EQ(kinds_of<in<float>>(lev::strided(values, 4, 2, 4)), unknown);
  EXPECT_EQ(kinds_of<in<float>>(lev::strided(values, 1, 2, 4)), unknown);
  EXPECT_EQ(kinds_of<in<float>>(lev::sliced(values)), unknown);
  EXPECT_EQ(kinds_of<far<const float>>(values), unknown);
  EXPECT_EQ(kinds_of<in<wide>>(far_apart), unknown);
  EXPECT_EQ((kinds_of<in<float>, out<float>>(values, lev::view(values, 8))), unknown);
  EXPECT_EQ((kinds_of<in<float>, out<float>>(lev::view(values, 8), lev::view(values + 8, 8))),
            (detail::plain_kinds<in<float>, out<float>> | detail::plain_kinds_compared));
  EXPECT_EQ(kinds_of<float>(1.0f), detail::plain_kinds<float>);
}

}  // namespace
}  // namespace lev
