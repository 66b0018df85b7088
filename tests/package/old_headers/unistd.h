/* <unistd.h> as glibc 2.28 has it. */
#define _Fork _Fork_of_later
#define close_range close_range_of_later
#define gettid gettid_of_later
#include_next <unistd.h>
#undef _Fork
#undef close_range
#undef gettid
