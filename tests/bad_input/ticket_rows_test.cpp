// Bad tickets, waits and closes: rows 27 to 37 of README.md.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

class ticket_rows : public machine_test {
 protected:
  // Expects that a submit after `t` is refused with `code`.
  static void expect_refused_after(runtime& r, const ticket& t, status code) {
    options o;
    o.after(t);
    refusal why;
    EXPECT_FALSE(r.try_submit(pack(nothing), &o, &why));
    EXPECT_EQ(why.code, code) << why.message;
    EXPECT_NE(std::string(why.message).find("after()"), std::string::npos) << why.message;
  }
};
LEV_ON_EVERY_MACHINE(ticket_rows);

LEV_TEST(ticket_rows, row_27_a_dependency_on_a_ticket_of_another_runtime) {
  runtime& r = open();
  runtime other(settings());
  ticket foreign = other.submit(nothing);
  expect_refused_after(r, foreign, status::bad_ticket);
  expect_ok(foreign);
  expect_ok(r.submit(nothing));
}

LEV_TEST(ticket_rows, row_28_a_dependency_on_a_stale_ticket) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  ticket copy(t.home(), t.id());
  expect_ok(t);
  expect_refused_after(r, copy, status::stale_ticket);
  copy.forget();
}

// An empty ticket names nothing: it is passed over.
LEV_TEST(ticket_rows, row_29_a_dependency_on_an_empty_ticket) {
  runtime& r = open();
  const ticket none;
  expect_ok(r.submit(after(none, none), nothing));
}

// On sim they wait meanwhile; elsewhere they may be over, which is as well.
LEV_TEST(ticket_rows, row_29_numbers_of_posted_and_released_tasks) {
  runtime& r = open();
  detail::runtime_state* core = r.state();
  ticket released = r.submit(nothing);
  const std::uint64_t number = released.id();
  released.release();
  for (int i = 0; i < 10; ++i) r.post(nothing);
  for (std::uint64_t id = 1; id < settings().tickets; ++id) {
    ticket t(core, id);
    expect_refused_after(r, t, status::stale_ticket);
    EXPECT_EQ(t.cancel(), status::stale_ticket) << id;
    EXPECT_EQ(t.wait_outcome(0).code, status::stale_ticket) << id;
  }
  ticket again(core, number);
  EXPECT_EQ(again.wait_outcome(0).code, status::stale_ticket);
  EXPECT_EQ(r.wait_for_completion().code, status::ok);
}

LEV_TEST(ticket_rows, row_29_numbers_that_are_no_tickets) {
  runtime& r = open();
  detail::runtime_state* core = r.state();
  for (const std::uint64_t id : {std::uint64_t{0}, std::uint64_t{1} << 32, ~std::uint64_t{0},
                                 std::uint64_t{0xffffffff}, std::uint64_t{0x00100000}}) {
    ticket t(core, id);
    EXPECT_EQ(t.wait_outcome(0).code, status::bad_ticket) << id;
    ticket again(core, id);
    EXPECT_EQ(again.cancel(), status::bad_ticket);
    EXPECT_EQ(again.then([](void*) {}, nullptr), status::bad_ticket);
    again.release();
  }
  EXPECT_EQ(ticket(nullptr, 5).wait_outcome(0).code, status::bad_ticket);
}

// A slot that was never used, and one that is used by another generation.
LEV_TEST(ticket_rows, row_30_a_ticket_that_is_used_up) {
  runtime& r = open();
  EXPECT_EQ(ticket(r.state(), (std::uint64_t{7} << 32) + 9).wait_outcome(0).code,
            status::stale_ticket);
  ticket t = r.submit(nothing);
  const std::uint64_t id = t.id();
  t.release();
  expect_all_done();
  ticket copy(r.state(), id);
  EXPECT_EQ(copy.wait_outcome().code, status::stale_ticket);
  ticket twice(r.state(), id);
  twice.release();
  expect_ok(r.submit(nothing));
}

LEV_TEST(ticket_rows, rows_31_and_32_empty_sets) {
  open();
  std::vector<ticket> none(3);
  std::size_t index = 5;
  EXPECT_EQ(wait_any(nullptr, 0, &index).code, status::bad_argument);
  EXPECT_EQ(index, none_ready);
  EXPECT_EQ(wait_any(none.data(), 3, &index).code, status::bad_argument);
  EXPECT_EQ(wait_all(nullptr, 0).code, status::ok);
  EXPECT_EQ(wait_all(none.data(), 3, 0).code, status::ok);
}

LEV_TEST(ticket_rows, no_place_for_the_index) {
  ticket t = open().submit(nothing);
  EXPECT_EQ(wait_any(&t, 1, nullptr).code, status::bad_argument);
  EXPECT_TRUE(t) << "it must not be consumed";
  expect_ok(t);
}

LEV_TEST(ticket_rows, sets_and_mutexes_that_are_null) {
  runtime& r = open();
  std::size_t index = 5;
  EXPECT_EQ(wait_any(nullptr, 3, &index).code, status::bad_argument);
  EXPECT_EQ(index, none_ready);
  EXPECT_EQ(wait_all(nullptr, 3).code, status::bad_argument);
  EXPECT_EQ(r.make_mutex(nullptr), status::bad_argument);
  expect_ok(r.submit(nothing));
}

// A wait that is refused speaks of the ticket, not of an end of its task.
LEV_TEST(ticket_rows, a_refused_wait_says_what_to_do) {
  runtime& r = open();
  const auto text_of = [](ticket& t, wait_policy how = wait_policy::help) -> std::string {
    try {
      t.wait(how);
      return "was accepted";
    } catch (const error& e) {
      return e.what();
    }
  };
  ticket t = r.submit(nothing);
  EXPECT_EQ(text_of(t, static_cast<wait_policy>(77)).find("the task"), std::string::npos);
  ticket copy(r.state(), t.id());
  expect_ok(t);
  EXPECT_NE(text_of(t).find("this is no ticket"), std::string::npos) << text_of(t);
  EXPECT_NE(text_of(copy).find("used up"), std::string::npos);
}

LEV_TEST(ticket_rows, row_34_time_outs) {
  runtime& r = open();
  for (const std::int64_t bad : {std::int64_t{-2}, std::int64_t{-1000}, INT64_MIN}) {
    ticket t = r.submit(nothing);
    EXPECT_EQ(t.wait_outcome(bad).code, status::bad_argument);
    EXPECT_TRUE(t) << "it must not be consumed";
    std::size_t index = 0;
    EXPECT_EQ(wait_any(&t, 1, &index, bad).code, status::bad_argument);
    EXPECT_EQ(wait_all(&t, 1, bad).code, status::bad_argument);
    EXPECT_EQ(r.wait_for_completion(bad).code, status::bad_argument);
    EXPECT_EQ(r.close(bad), status::bad_argument);
    EXPECT_TRUE(t);
    EXPECT_EQ(t.wait_outcome(INT64_MAX).code, status::ok);
  }
}

LEV_TEST(ticket_rows, row_35_submits_after_the_close) {
  runtime& r = open();
  EXPECT_EQ(r.close(), status::ok);
  refusal why;
  EXPECT_FALSE(r.try_submit(pack(nothing), nullptr, &why));
  EXPECT_EQ(why.code, status::closed);
  EXPECT_NE(std::string(why.message).find("clos"), std::string::npos);
  EXPECT_THROW(r.post(nothing), error);
  EXPECT_THROW(r.submit(nothing), error);
  EXPECT_THROW(r.submit_bulk(3, [](std::size_t, descriptor& d) { d = pack(nothing); }), error);
  EXPECT_THROW(r.parallel_for({0, 10}, [](range) {}), error);
}

// A mistake while a set of options is built is not lost: too many of each are refused at submit.
LEV_TEST(ticket_rows, too_many_predecessors_are_refused_and_no_memory_is_touched) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  options o;
  for (int i = 0; i < 1000; ++i) o.after(t);
  refusal why;
  EXPECT_FALSE(r.try_submit(pack(nothing), &o, &why));
  EXPECT_EQ(why.code, status::too_big);
  EXPECT_NE(std::string(why.message).find("1000"), std::string::npos) << why.message;
  options many_locks;
  for (mutex_id m = 0; m < 1000; ++m) many_locks.locks(m);
  EXPECT_FALSE(r.try_submit(pack(nothing), &many_locks, &why));
  EXPECT_EQ(why.code, status::too_big);
  expect_ok(t);
}

LEV_TEST(ticket_rows, a_range_that_ends_before_it_begins) {
  static const auto takes_range = define("bad_input.takes_range", [](range) {});
  runtime& r = open();
  EXPECT_EQ(expect_refused(status::bad_range, "", [&] { r.submit(takes_range, range{10, 3}); }), 0);
  if (is_remote()) return;  // refused in any case
  EXPECT_EQ(expect_refused(status::bad_range, "", [&] { r.parallel_for({5, 4}, [](range) {}); }), 0)
      << "it is the loop's first";
}

LEV_TEST(ticket_rows, lengths_that_do_not_fit_the_address_space) {
  runtime& r = open();
  std::uint64_t x = 0;
  const std::size_t huge = ~std::size_t{0} / sizeof x + 2;
  EXPECT_THROW(r.submit(increment, view(&x, huge)), error);
  EXPECT_THROW(r.submit(increment, strided(&x, huge, 1, 1)), error);
  EXPECT_THROW(r.submit(increment, strided(&x, 2, huge, 1)), error);
  EXPECT_EQ(x, 0u);
}

}  // namespace
}  // namespace lev::test
