// A runtime is one thing.
#include <leveret/leveret.hpp>

void program(lev::runtime& r) {
#ifdef RIGHT
  lev::runtime& other = r;
#else
  lev::runtime other = r;
#endif
  other.close();
}
