/* A part of the tests that is compiled without exceptions and without type information. */
#ifndef LEVERET_TESTS_API_NO_EXCEPTIONS_H
#define LEVERET_TESTS_API_NO_EXCEPTIONS_H

/* Returns 45. */
int lev_sum_without_exceptions();

#endif
