/* <spawn.h> as glibc 2.28 has it. */
#define posix_spawn_file_actions_addclosefrom_np addclosefrom_np_of_later
#include_next <spawn.h>
#undef posix_spawn_file_actions_addclosefrom_np
