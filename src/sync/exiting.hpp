// Whether a static object is destroyed because the program ends, by exit() or a return from main():
// on a thread that may be any, and in the middle of anything.
#ifndef LEVERET_SYNC_EXITING_HPP
#define LEVERET_SYNC_EXITING_HPP

namespace lev {

// watch_exit() has is_exiting() know of an end from now on. What was registered last runs first at
// exit(): it is called when the objects that ask are there, and for each of the first of them, as a
// process has few that are static.
void watch_exit() noexcept;

// is_exiting() tells whether this thread has called exit(), or returned from main().
bool is_exiting() noexcept;

}  // namespace lev

#endif
