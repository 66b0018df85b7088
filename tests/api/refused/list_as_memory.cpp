// A list is not contiguous.
#include <leveret/leveret.hpp>

#include <list>
#include <vector>

#ifdef RIGHT
using data = std::vector<float>;
#else
using data = std::list<float>;
#endif

void program(lev::runtime& r, lev::procedure<void(lev::in<float>)> p, data& x) {
  r.submit(p, x);
}
