// The program of strange_names.cpp.
#include "api/strange_names.h"

int main() {
  return lev_sum_of_strange_names() == 22 ? 0 : 1;
}
