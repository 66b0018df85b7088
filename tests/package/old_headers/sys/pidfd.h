/* glibc 2.28 has no <sys/pidfd.h>. */
#error "glibc has <sys/pidfd.h> since 2.36"
