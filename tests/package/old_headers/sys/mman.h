/* <sys/mman.h> as glibc 2.28 has it. */
#include_next <sys/mman.h>
#undef F_SEAL_FUTURE_WRITE
#undef MADV_COLD
#undef MADV_PAGEOUT
#undef MADV_POPULATE_READ
#undef MADV_POPULATE_WRITE
#undef MADV_COLLAPSE
#undef MFD_NOEXEC_SEAL
