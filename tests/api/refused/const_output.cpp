// An output cannot be const.
#include <leveret/leveret.hpp>

#include <vector>

#ifdef RIGHT
using data = std::vector<float>;
#else
using data = const std::vector<float>;
#endif

void program(lev::runtime& r, lev::procedure<void(lev::out<float>)> p, data& x) {
  r.submit(p, x);
}
