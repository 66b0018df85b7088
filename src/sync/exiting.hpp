// Whether a static object is destroyed because the program ends, by exit() or a return from main():
// on any thread, and in the middle of anything.
#pragma once

namespace lev {

// What asks is_exiting(). Programs make scopes without end, which must not use up the watches of
// their runtimes.
enum class exit_watcher : unsigned char { runtime, scope };

// watch_exit() makes is_exiting() know of an end from now on. At exit() the last registered handler
// runs first, so watch_exit() is called after each object that will ask was made. Only the first
// watches_max calls of each kind register one.
void watch_exit(exit_watcher of) noexcept;

// is_exiting() tells whether this thread has called exit(), or returned from main().
bool is_exiting() noexcept;

}  // namespace lev
