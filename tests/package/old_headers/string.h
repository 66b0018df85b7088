/* <string.h> as glibc 2.28 has it. */
#define sigabbrev_np sigabbrev_np_of_later
#define sigdescr_np sigdescr_np_of_later
#define strerrordesc_np strerrordesc_np_of_later
#define strerrorname_np strerrorname_np_of_later
#include_next <string.h>
#undef sigabbrev_np
#undef sigdescr_np
#undef strerrordesc_np
#undef strerrorname_np
