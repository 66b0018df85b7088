// A ticket is waited for once, so it is moved, not copied.
#include <leveret/leveret.hpp>

void program(lev::ticket& t) {
#ifdef RIGHT
  lev::ticket other = static_cast<lev::ticket&&>(t);
#else
  lev::ticket other = t;
#endif
  other.wait();
}
