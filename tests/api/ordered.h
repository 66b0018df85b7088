/* What ordered.c does for ordered_test.cpp. */
#ifndef LEVERET_TESTS_API_ORDERED_H
#define LEVERET_TESTS_API_ORDERED_H

#include <leveret/leveret.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x = x * factor + 1, of each of some words; a factor of 0 is a failure, with code 7. */
lev_procedure_id advance_procedure(void);
/* Runs `tasks` tasks, each on the words from another one on to the end. */
lev_status run_ordered(lev_runtime* runtime, uint64_t* words, size_t count, unsigned tasks);
/* Of four words: a task on the first two fails, then come one that follows it, and one apart. */
lev_status run_failing(lev_runtime* runtime, uint64_t* words, lev_ticket tickets[3],
                       lev_outcome* outcome);

#ifdef __cplusplus
}
#endif

#endif
