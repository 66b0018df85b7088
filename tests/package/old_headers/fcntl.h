/* <fcntl.h> as glibc 2.28 has it. */
#include_next <fcntl.h>
#undef F_SEAL_FUTURE_WRITE
