// The order of a reduction's pieces, which end in any order.
#include <leveret/reduce.hpp>

namespace lev::detail {

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

}  // namespace

// Merge sort, as there is no memory to be had here: runs of 1, 2, 4 ... pieces, each at the place
// of its bit.
reduced_piece* sort_by_begin(reduced_piece* list) noexcept {
  constexpr int places = 64;
  reduced_piece* runs[places] = {};
  while (list != nullptr) {
    reduced_piece* run = list;
    list = list->next;
    run->next = nullptr;
    int place = 0;
    for (; runs[place] != nullptr; ++place) {
      run = merged(runs[place], run);
      runs[place] = nullptr;
    }
    runs[place] = run;
  }
  reduced_piece* all = nullptr;
  for (reduced_piece* run : runs) all = merged(run, all);
  return all;
}

}  // namespace lev::detail
