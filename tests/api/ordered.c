/* A scope of ordered tasks as a C program uses it: ordered_test.cpp calls it. */
#include <leveret/leveret.h>
#include <string.h>

#include "ordered.h"

static uint64_t value_of(const lev_argument* a) {
  uint64_t value = 0;
  memcpy(&value, &a->address, sizeof value);
  return value;
}
static uint64_t* words_of(const lev_argument* a) {
  return (uint64_t*)(uintptr_t)a->address;
}

/* x = x * factor + 1, of each: another order gives something else. */
static int advance(const lev_call* call) {
  const uint64_t factor = value_of(&call->arguments[0]);
  const lev_argument* x = &call->arguments[1];
  if (factor == 0) return 7;
  for (uint64_t i = 0; i < x->row_bytes / sizeof(uint64_t); ++i)
    words_of(x)[i] = words_of(x)[i] * factor + 1;
  return 0;
}

static lev_status submit_one(lev_ordered* scope, lev_procedure_id procedure, uint64_t factor,
                             uint64_t* words, size_t count, lev_ticket* ticket) {
  const lev_argument arguments[] = {lev_value(&factor, sizeof factor),
                                    lev_memory(LEV_INOUT, words, sizeof *words, count)};
  return lev_ordered_submit(scope, procedure, arguments, 2, NULL, ticket);
}

lev_procedure_id advance_procedure(void) {
  static const lev_kind kinds[] = {LEV_VALUE, LEV_INOUT};
  lev_procedure_id id = lev_lookup("api.advance");
  if (id == 0) lev_register("api.advance", advance, NULL, kinds, 2, &id);
  return id;
}

lev_status run_ordered(lev_runtime* runtime, uint64_t* words, size_t count, unsigned tasks) {
  lev_ordered* scope = NULL;
  lev_status code = lev_ordered_open(runtime, &scope);
  for (unsigned i = 0; i < tasks && code == LEV_OK; ++i) {
    const size_t first = i % count;
    code = submit_one(scope, advance_procedure(), i + 2, words + first, count - first, NULL);
  }
  if (code == LEV_OK) code = lev_ordered_wait(scope, LEV_NO_TIMEOUT, NULL);
  lev_ordered_close(scope);
  return code;
}

lev_status run_failing(lev_runtime* runtime, uint64_t* words, lev_ticket tickets[3],
                       lev_outcome* outcome) {
  lev_ordered* scope = NULL;
  lev_status code = lev_ordered_open(runtime, &scope);
  if (code != LEV_OK) return code;
  code = submit_one(scope, advance_procedure(), 0, words, 2, &tickets[0]);
  while (code == LEV_OK && lev_poll(runtime, tickets[0]) == LEV_PENDING) continue;
  if (code == LEV_OK) code = submit_one(scope, advance_procedure(), 2, words + 1, 2, &tickets[1]);
  if (code == LEV_OK) code = submit_one(scope, advance_procedure(), 2, words + 3, 1, &tickets[2]);
  if (code == LEV_OK) code = lev_ordered_wait(scope, LEV_NO_TIMEOUT, outcome);
  lev_ordered_close(scope);
  return code;
}
