// List ranking: how far each node of a linked list is from the list's head. The nodes lie at random
// in memory, so a walk waits for memory at every step, and knows where to go next only then.
//
// Papers: CellMT, section 6, names it as a workload that contexts should suit. The algorithm is
// Helman and JaJa's (1999), which Bader, Agarwal and Madduri took to the Cell (2007).
#pragma once

#include <cstddef>
#include <cstdint>
#include <leveret/leveret.hpp>

namespace leveret_apps {

constexpr std::uint32_t no_node = 0xffffffff;

// All that a walk touches is in one cache line.
struct list_node {
  std::uint32_t next;     // no_node: the last of its list
  std::uint32_t sublist;  // used by list_rank()
  std::uint32_t place;    // used by list_rank(), and list_rank_serial(): distance from the head
  std::uint32_t unused;
};

struct list_ranking_options {
  std::size_t nodes = std::size_t{1} << 22;  // 64 MiB; at most 2^32 - 2
  std::size_t lists = 1;                     // 1 to nodes
  unsigned tasks = 256;  // tasks a step is handed over as, at least 1; no more than sublists
  // Places where lists are cut; as many sublists more than lists, or fewer when some fall together.
  // Their lengths vary, up to some 7 times the mean of 1024, and one is one walk.
  unsigned cuts = 1024;
  bool dice = true;
  std::uint64_t seed = 1;  // of the lists, and of the cuts
  bool check = true;       // compare with list_rank_serial()
};

// list_make() links `count` nodes, in random order, to `lists` lists that differ by at most one
// node in length, and stores the head of each. Same seed, same lists.
void list_make(std::size_t count, std::size_t lists, std::uint64_t seed, list_node* nodes,
               std::uint32_t* heads);

// list_rank() ranks the nodes of all lists: ranks[i] is the distance of node i from the head of its
// list, no_node for a node in none. 1. Cut the lists into sublists. 2. Tasks walk the sublists, in
// far memory, and number their nodes. 3. The caller adds up the sublists' lengths along each list.
// 4. Tasks add them to the numbers. It writes to all nodes, but not to `next`.
// The lists must not meet, and none may be a ring; where that shows it is refused, else ranks are
// wrong. `nodes`, `heads` and `ranks` must not overlap. Waits for all tasks. Thread safe.
// Throws lev::error: bad_argument (no lists or nodes, or too many; a head that is no node, or twice
// there; lists that meet), bad_range (a `next` that is no node), not_supported (a machine whose
// tasks cannot get).
void list_rank(lev::runtime& runtime, const list_ranking_options& options, list_node* nodes,
               const std::uint32_t* heads, std::uint32_t* ranks);

// list_rank_serial() is the reference: walks one list after the other, and stores ranks in `place`.
// The lists must be right.
void list_rank_serial(list_node* nodes, const std::uint32_t* heads, std::size_t lists);

struct list_ranking_report {
  double seconds = 0;         // by the machine's clock: virtual on `sim`
  double serial_seconds = 0;  // list_rank_serial(), by this computer's clock; 0 when not checked
  double error = 0;           // nodes whose rank differs
  bool correct = false;       // checked, and no rank differs
  std::uint64_t sublists = 0;
  std::uint64_t tasks = 0;  // accepted by the runtime, pieces of diced ones included
};

// run_list_ranking() makes lists and ranks them. Throws as list_rank() does, and std::bad_alloc.
list_ranking_report run_list_ranking(lev::runtime& runtime, const list_ranking_options& options);

}  // namespace leveret_apps
