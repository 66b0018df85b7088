/* <linux/futex.h> as Linux 4.18 has it. */
#define futex_waitv futex_waitv_of_later
#include_next <linux/futex.h>
#undef futex_waitv
#undef FUTEX_32
#undef FUTEX_LOCK_PI2
