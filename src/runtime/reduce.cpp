// The order of a reduction's pieces, which end in any order.
#include <leveret/reduce.hpp>

#include "base/assert.hpp"
#include "sync/env.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace lev::detail {

struct reduction {
  // Written by the threads that run pieces, read when the loop has ended.
  atomic<reduced_piece*> first{nullptr};
};

reduction* open_reduction() {
  return new reduction;
}

void add_piece(reduction* r, reduced_piece* made) noexcept {
  LEV_ASSERT(made->next == nullptr);
  made->next = r->first.load(memory_order_relaxed);
  // Relaxed: the loop's end publishes the piece to its caller, as it does what the body has stored.
  while (!r->first.compare_exchange_weak(made->next, made, memory_order_relaxed,
                                         memory_order_relaxed)) {
  }
}

reduced_piece* sort_pieces(reduction* r) {
  std::vector<reduced_piece*> pieces;
  for (reduced_piece* p = r->first.load(memory_order_relaxed); p != nullptr; p = p->next)
    pieces.push_back(p);
  // The last one first: each is put before those behind it.
  std::sort(pieces.begin(), pieces.end(),
            [](const reduced_piece* a, const reduced_piece* b) { return a->begin > b->begin; });
  reduced_piece* first = nullptr;
  for (reduced_piece* p : pieces) p->next = std::exchange(first, p);
  r->first.store(first, memory_order_relaxed);
  return first;
}

reduced_piece* close_reduction(reduction* r) noexcept {
  reduced_piece* first = r->first.load(memory_order_relaxed);
  delete r;
  return first;
}

}  // namespace lev::detail
