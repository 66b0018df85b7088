// after() takes tickets, not their numbers.
#include <leveret/leveret.hpp>

void program(lev::runtime& r, lev::procedure<void()> p) {
  const lev::ticket first = r.submit(p);
#ifdef RIGHT
  r.submit(lev::after(first), p);
#else
  r.submit(lev::after(first.id()), p);
#endif
}
