/* <sys/syscall.h> as Linux 4.18 has it: without what came later. */
#include_next <sys/syscall.h>
#undef SYS_pidfd_send_signal
#undef SYS_io_uring_setup
#undef SYS_open_tree
#undef SYS_pidfd_open
#undef SYS_clone3
#undef SYS_close_range
#undef SYS_openat2
#undef SYS_pidfd_getfd
#undef SYS_faccessat2
#undef SYS_process_madvise
#undef SYS_epoll_pwait2
#undef SYS_landlock_create_ruleset
#undef SYS_memfd_secret
#undef SYS_process_mrelease
#undef SYS_futex_waitv
