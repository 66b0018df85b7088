/* The C structs, as a C compiler lays them out: layout_test.cpp holds the C++ ones to the same
 * numbers. */
#include <leveret/leveret.h>
#include <stddef.h>

_Static_assert(sizeof(lev_argument) == 32, "lev_argument");
_Static_assert(offsetof(lev_argument, address) == 0, "address");
_Static_assert(offsetof(lev_argument, row_bytes) == 8, "row_bytes");
_Static_assert(offsetof(lev_argument, stride_bytes) == 16, "stride_bytes");
_Static_assert(offsetof(lev_argument, rows) == 24, "rows");
_Static_assert(offsetof(lev_argument, unit_bytes) == 28, "unit_bytes");
_Static_assert(offsetof(lev_argument, what) == 30, "what");
_Static_assert(offsetof(lev_argument, flags) == 31, "flags");
_Static_assert(sizeof(lev_ticket) == 8, "lev_ticket");
_Static_assert(sizeof(lev_procedure_id) == 2, "lev_procedure_id");
_Static_assert(sizeof(((lev_outcome*)0)->message) == 256, "message");
_Static_assert(LEV_OK == 0 && LEV_POOL_DOWN == 29 && LEV_TOO_LATE == 32, "lev_status");
_Static_assert(LEV_VALUE == 1 && LEV_RANGE == 6, "lev_kind");
_Static_assert(LEV_ARGUMENTS_MAX == 18 && LEV_NO_TIMEOUT == -1 && LEV_SLICED == 1 && LEV_FAR == 4,
               "constants");

int lev_layout_is_checked(void) {
  return 1;
}
