// List ranking: the lists themselves, and tasks against the serial walk.
#include <leveret_apps/list_ranking.hpp>
#include <vector>

#include "app_fixture.hpp"

using leveret_apps::list_node;
using leveret_apps::list_ranking_options;
using leveret_apps::no_node;

namespace {

struct some_lists {
  some_lists(std::size_t count, std::size_t lists, std::uint64_t seed)
      : nodes(count), heads(lists) {
    leveret_apps::list_make(count, lists, seed, nodes.data(), heads.data());
  }
  std::vector<list_node> nodes;
  std::vector<std::uint32_t> heads;
};

std::vector<std::uint32_t> ranks_of(const some_lists& l) {
  std::vector<std::uint32_t> ranks(l.nodes.size(), no_node);
  for (const std::uint32_t head : l.heads) {
    std::uint32_t rank = 0;
    for (std::uint32_t at = head; at != no_node; at = l.nodes[at].next) ranks[at] = rank++;
  }
  return ranks;
}

TEST(list_make, reaches_every_node_once) {
  for (const std::size_t lists : {1u, 2u, 7u, 100u}) {
    const some_lists l(100, lists, 3);
    std::vector<int> seen(100);
    for (const std::uint32_t head : l.heads) {
      for (std::uint32_t at = head; at != no_node; at = l.nodes[at].next) ++seen[at];
    }
    EXPECT_EQ(seen, std::vector<int>(100, 1)) << lists << " lists";
  }
}

TEST(list_make, depends_on_the_seed_alone) {
  EXPECT_EQ(ranks_of(some_lists(1000, 1, 5)), ranks_of(some_lists(1000, 1, 5)));
  EXPECT_NE(ranks_of(some_lists(1000, 1, 5)), ranks_of(some_lists(1000, 1, 6)));
}

TEST(list_rank_serial, counts_from_the_head) {
  some_lists l(500, 3, 1);
  const auto expected = ranks_of(l);
  list_rank_serial(l.nodes.data(), l.heads.data(), l.heads.size());
  for (std::size_t i = 0; i < 500; ++i) EXPECT_EQ(l.nodes[i].place, expected[i]);
}

class list_ranking_test : public app_test {
 protected:
  std::vector<std::uint32_t> rank(some_lists& l, unsigned tasks, unsigned cuts) {
    std::vector<std::uint32_t> ranks(l.nodes.size(), 12345);
    list_rank(runtime(), options(l, tasks, cuts), l.nodes.data(), l.heads.data(), ranks.data());
    return ranks;
  }
  list_ranking_options options(const some_lists& l, unsigned tasks, unsigned cuts) const {
    list_ranking_options o;
    o.nodes = l.nodes.size();
    o.lists = l.heads.size();
    o.tasks = tasks;
    o.cuts = cuts;
    o.dice = dice();
    return o;
  }
  lev::status refused(some_lists& l) {
    try {
      rank(l, 4, 8);
      return lev::status::ok;
    } catch (const lev::error& e) {
      return e.code();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(machines, list_ranking_test, every_case, case_name);

TEST_P(list_ranking_test, equals_serial_however_lists_are_cut) {
  for (const std::size_t lists : {1u, 5u, 300u}) {
    some_lists l(3000, lists, lists);
    const auto expected = ranks_of(l);
    for (const unsigned cuts : {0u, 1u, 50u, 5000u}) {
      for (const unsigned tasks : {0u, 1u, 9u, 256u}) {
        EXPECT_EQ(rank(l, tasks, cuts), expected)
            << lists << " lists, " << cuts << " cuts, " << tasks << " tasks";
      }
    }
  }
}

// Larger than what counts as near: on `threads` contexts take turns.
TEST_P(list_ranking_test, equals_serial_where_contexts_take_turns) {
  some_lists l(100'000, 2, 9);
  EXPECT_EQ(rank(l, 64, 64), ranks_of(l));
}

TEST_P(list_ranking_test, ranks_a_single_node) {
  some_lists l(1, 1, 1);
  EXPECT_EQ(rank(l, 10, 10), std::vector<std::uint32_t>{0});
}

TEST_P(list_ranking_test, nodes_of_no_list_have_no_rank) {
  some_lists l(1000, 2, 4);
  const std::uint32_t left_out = l.heads[1];
  l.heads.pop_back();
  const auto ranks = rank(l, 8, 20);
  EXPECT_EQ(ranks, ranks_of(l));
  EXPECT_EQ(ranks[left_out], no_node);
}

TEST_P(list_ranking_test, a_ring_beside_the_lists_has_no_ranks) {
  some_lists l(1000, 2, 4);
  for (std::uint32_t at = l.heads[1];; at = l.nodes[at].next) {
    if (l.nodes[at].next != no_node) continue;
    l.nodes[at].next = l.heads[1];
    break;
  }
  l.heads.pop_back();
  EXPECT_EQ(rank(l, 8, 20), ranks_of(l));
}

TEST_P(list_ranking_test, run_reports_a_correct_result) {
  list_ranking_options o;
  o.nodes = 20'000;
  o.lists = 3;
  o.cuts = 100;
  o.tasks = 20;
  o.dice = dice();
  const auto report = run_list_ranking(runtime(), o);
  EXPECT_TRUE(report.correct);
  EXPECT_EQ(report.error, 0);
  EXPECT_GT(report.seconds, 0);
  EXPECT_GT(report.serial_seconds, 0);
  EXPECT_GE(report.sublists, 100u);
  EXPECT_GE(report.tasks, 40u);
}

TEST_P(list_ranking_test, wrong_lists_are_refused) {
  {
    some_lists l(100, 2, 1);
    l.heads[1] = 100;
    EXPECT_EQ(refused(l), lev::status::bad_argument);
    l.heads[1] = l.heads[0];
    EXPECT_EQ(refused(l), lev::status::bad_argument);
    l.heads.clear();
    EXPECT_EQ(refused(l), lev::status::bad_argument);
  }
  some_lists ring(1000, 1, 1);
  for (list_node& n : ring.nodes) {
    if (n.next == no_node) n.next = ring.heads[0];
  }
  EXPECT_EQ(refused(ring), lev::status::bad_argument);
}

TEST(list_ranking_on_threads, a_link_to_nowhere_is_refused) {
  lev::config config;
  config.workers = 2;
  lev::runtime runtime(config);
  some_lists l(1000, 1, 1);
  for (list_node& n : l.nodes) {
    if (n.next == no_node) n.next = 1000;
  }
  list_ranking_options o;
  o.nodes = 1000;
  std::vector<std::uint32_t> ranks(1000);
  try {
    list_rank(runtime, o, l.nodes.data(), l.heads.data(), ranks.data());
    FAIL() << "not refused";
  } catch (const lev::error& e) {
    EXPECT_EQ(e.code(), lev::status::bad_range);
  }
  EXPECT_EQ(runtime.count().submitted, runtime.count().completed);
}

TEST(list_ranking_on_processes, is_refused) {
  if (const char* why = lev::machine_unavailable("processes")) GTEST_SKIP() << why;
  lev::config config;
  config.machine = "processes";
  config.workers = 1;
  lev::runtime runtime(config);
  try {
    leveret_apps::run_list_ranking(runtime, {});
    FAIL() << "not refused";
  } catch (const lev::error& e) {
    EXPECT_EQ(e.code(), lev::status::not_supported);
  }
}

}  // namespace
