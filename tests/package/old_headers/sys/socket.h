/* <sys/socket.h> as Linux 4.18 has it. */
#include_next <sys/socket.h>
#undef SO_PEERPIDFD
