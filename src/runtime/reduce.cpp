// The order of a reduction's pieces, which end in any order.
#include <leveret/reduce.hpp>

#include "base/assert.hpp"
#include "sync/env.hpp"

namespace lev::detail {

struct reduction {
  // Written by the threads that run pieces, read when the loop has ended.
  atomic<reduced_piece*> first{nullptr};
};

namespace {

reduced_piece* merged(reduced_piece* a, reduced_piece* b) noexcept {
  reduced_piece* first = nullptr;
  reduced_piece** end = &first;
  while (a != nullptr && b != nullptr) {
    reduced_piece*& least = a->begin <= b->begin ? a : b;
    *end = least;
    end = &least->next;
    least = *end;
  }
  *end = a != nullptr ? a : b;
  return first;
}

// Merge sort, as there is no memory to be had here: runs of 1, 2, 4 ... pieces, each at the place
// of its bit.
reduced_piece* sorted(reduced_piece* list) noexcept {
  constexpr int places = 64;
  reduced_piece* runs[places] = {};
  while (list != nullptr) {
    reduced_piece* run = list;
    list = list->next;
    LEV_DCHECK(run != list);
    run->next = nullptr;
    int place = 0;
    for (; runs[place] != nullptr; ++place) {
      run = merged(runs[place], run);
      runs[place] = nullptr;
      LEV_DCHECK(place + 1 < places);
    }
    runs[place] = run;
  }
  reduced_piece* all = nullptr;
  for (reduced_piece* run : runs) all = merged(run, all);
  return all;
}

}  // namespace

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

reduced_piece* sort_pieces(reduction* r) noexcept {
  reduced_piece* first = sorted(r->first.load(memory_order_relaxed));
  r->first.store(first, memory_order_relaxed);
  return first;
}

reduced_piece* close_reduction(reduction* r) noexcept {
  reduced_piece* first = r->first.load(memory_order_relaxed);
  delete r;
  return first;
}

}  // namespace lev::detail
