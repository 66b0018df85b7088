/* Items for leveret.interleave(), with nothing but the header that comes with the package. */
#include <leveret/leveret.h>

/* A list as indices: where[i] is the element behind i, or -1. */
struct lists {
  const int64_t* behind;
  const int64_t* first;
  int64_t* lengths;
};

void list_length(size_t i, lev_strand* strand, void* argument) {
  const struct lists* all = argument;
  int64_t length = 0;
  for (int64_t at = all->first[i]; at >= 0; ++length) {
    const int64_t* behind = lev_strand_fetch(strand, &all->behind[at]);
    at = *behind;
  }
  all->lengths[i] = length;
}

/* Counts the calls of each item in an array, and tells whether it had a strand. */
void count_call(size_t i, lev_strand* strand, void* argument) {
  uint8_t* calls = argument;
  lev_strand_yield(strand);
  calls[i] = (uint8_t)(calls[i] + (strand == NULL ? 1 : 16));
}

/* Writes where each turn is: how many items run at a time shows in their order. */
struct turns {
  size_t count;
  uint8_t items[64];
};

void two_turns(size_t i, lev_strand* strand, void* argument) {
  struct turns* seen = argument;
  seen->items[seen->count++] = (uint8_t)i;
  lev_strand_yield(strand);
  seen->items[seen->count++] = (uint8_t)i;
}

/* Waits until another thread, which needs the interpreter, has set the flag. */
void wait_for_flag(size_t i, lev_strand* strand, void* argument) {
  const volatile uint8_t* flag = argument;
  (void)i;
  while (!*flag) lev_strand_yield(strand);
}
