// Tests of the table of procedures: registration, look-up, and what is refused. The table belongs
// to the process, so the test that fills it does so in a process of its own.
#include <gtest/gtest.h>
#include <leveret/procedure.hpp>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support/refused.hpp"
#include "task/procedure_table.hpp"

namespace lev {
namespace {

int do_nothing(const call&) {
  return 0;
}

procedure_info named(const char* name) {
  procedure_info info;
  info.name = name;
  info.run = &do_nothing;
  return info;
}

TEST(procedure_table, finds_what_was_registered) {
  static const kind kinds[] = {kind::in, kind::value};
  procedure_info info = named("unit.found");
  info.kinds = kinds;
  info.kind_count = 2;
  procedure_id id = 0;
  ASSERT_EQ(register_procedure(info, &id), status::ok);
  ASSERT_NE(id, 0);
  EXPECT_EQ(lookup("unit.found"), id);
  EXPECT_STREQ(procedure_name(id), "unit.found");
  const procedure_entry* entry = find_procedure(id);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->info.run, &do_nothing);
  EXPECT_EQ(entry->info.kind_count, 2u);
  EXPECT_EQ(entry->kinds[0], kind::in);
  EXPECT_EQ(entry->info.kinds, entry->kinds);
}

TEST(procedure_table, names_of_leverets_own_procedures_are_refused) {
  for (const char* own :
       {"leveret.bulk", "leveret.columns.vi", "leveret.join", "leveret.parallel_for"}) {
    procedure_id id = 7;
    EXPECT_EQ(register_procedure(named(own), &id), status::bad_argument) << own;
    EXPECT_EQ(id, 7);
    try {
      define(own, [] {});
      ADD_FAILURE() << own << " was taken";
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find("Leveret's own"), std::string::npos) << e.what();
    }
  }
  procedure_id id = 0;
  EXPECT_EQ(register_procedure(named("leveret.python_call"), &id), status::ok);
}

TEST(procedure_table, copies_the_name) {
  std::string name = "unit.copied";
  procedure_id id = 0;
  ASSERT_EQ(register_procedure(named(name.c_str()), &id), status::ok);
  name = "xxxxxxxxxxx";
  EXPECT_STREQ(procedure_name(id), "unit.copied");
}

TEST(procedure_table, a_taken_name_gives_the_present_id) {
  procedure_id first = 0;
  procedure_id second = 0;
  ASSERT_EQ(register_procedure(named("unit.twice"), &first), status::ok);
  EXPECT_EQ(register_procedure(named("unit.twice"), &second), status::exists);
  EXPECT_EQ(first, second);
}

TEST(procedure_table, knows_no_other_ids) {
  EXPECT_EQ(lookup("unit.never registered"), 0);
  EXPECT_EQ(lookup(nullptr), 0);
  EXPECT_EQ(find_procedure(0), nullptr);
  EXPECT_EQ(find_procedure(procedure_count_max), nullptr);
  // Not a constant: GCC at -O3 warns of the table's end, which the function looks at first.
  const volatile procedure_id last = 0xffff;
  EXPECT_EQ(find_procedure(last), nullptr);
  EXPECT_STREQ(procedure_name(0), "?");
  EXPECT_STREQ(procedure_name(0xffff), "?");
}

TEST(procedure_table, refuses_bad_entries) {
  EXPECT_EQ(register_procedure(named(nullptr), nullptr), status::bad_argument);
  EXPECT_EQ(register_procedure(named(""), nullptr), status::bad_argument);
  procedure_info no_body = named("unit.no_body");
  no_body.run = nullptr;
  EXPECT_EQ(register_procedure(no_body, nullptr), status::bad_argument);
  procedure_info many = named("unit.many");
  many.kind_count = argument_count_max + 1;
  EXPECT_EQ(register_procedure(many, nullptr), status::bad_argument_count);
  many.kind_count = 1;
  EXPECT_EQ(register_procedure(many, nullptr), status::bad_argument);
  const kind unknown[] = {static_cast<kind>(7)};
  many.kinds = unknown;
  EXPECT_EQ(register_procedure(many, nullptr), status::bad_argument);
  const kind none[] = {static_cast<kind>(0)};
  many.kinds = none;
  EXPECT_EQ(register_procedure(many, nullptr), status::bad_argument);
  EXPECT_EQ(lookup("unit.many"), 0);
}

// As a look-up in a library that has not got it gives.
TEST(procedure_table, a_null_function_is_refused_where_it_is_defined) {
  void (*const none)(int) = nullptr;
  test::expect_refused(status::bad_argument, "the function is null",
                       [&] { define("unit.null_function", none); });
  EXPECT_EQ(lookup("unit.null_function"), 0);
}

TEST(procedure_table, a_name_has_at_most_63_bytes) {
  const std::string longest(procedure_name_bytes_max, 'n');
  EXPECT_EQ(register_procedure(named(longest.c_str()), nullptr), status::ok);
  EXPECT_NE(lookup(longest.c_str()), 0);
  EXPECT_EQ(register_procedure(named((longest + "n").c_str()), nullptr), status::too_big);
}

TEST(procedure_table, threads_register_each_name_once) {
  constexpr int thread_count = 4;
  constexpr int name_count = 50;
  std::vector<std::vector<procedure_id>> ids(thread_count, std::vector<procedure_id>(name_count));
  std::vector<int> made(thread_count);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < name_count; ++i) {
        const std::string name = "unit.shared." + std::to_string(i);
        made[t] += register_procedure(named(name.c_str()), &ids[t][i]) == status::ok;
        EXPECT_EQ(lookup(name.c_str()), ids[t][i]);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  int total = 0;
  for (std::size_t t = 0; t < thread_count; ++t) {
    EXPECT_EQ(ids[t], ids[0]);
    total += made[t];
  }
  EXPECT_EQ(total, name_count);
}

// Registers until the table is full; ends the process with 0 if it behaves.
[[noreturn]] void fill_the_table() {
  status code = status::ok;
  unsigned made = 0;
  for (unsigned i = 0; i < 2 * procedure_count_max && code == status::ok; ++i) {
    code = register_procedure(named(("unit.fill." + std::to_string(i)).c_str()), nullptr);
    made += code == status::ok;
  }
  const bool refused = code == status::too_big && made <= procedure_count_max;
  const bool last_is_there = find_procedure(procedure_count_max) != nullptr;
  const bool none_is_behind = find_procedure(procedure_count_max + 1) == nullptr;
  std::string said;
  try {
    define("unit.one_too_many", [] {});
  } catch (const error& e) {
    said = e.what();
  }
  const bool is_helpful = said.find("unit.one_too_many") != std::string::npos &&
                          said.find("at most 1023") != std::string::npos &&
                          said.find("define each once") != std::string::npos;
  std::_Exit(refused && last_is_there && none_is_behind && is_helpful ? 0 : 1);
}

using procedure_table_death_test = testing::Test;

TEST(procedure_table_death_test, a_full_table_says_so) {
  EXPECT_EXIT(fill_the_table(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lev
