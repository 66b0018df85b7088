// See strange_names.cpp.
#ifndef LEVERET_TESTS_API_STRANGE_NAMES_H
#define LEVERET_TESTS_API_STRANGE_NAMES_H

int lev_sum_of_strange_names();

#endif
