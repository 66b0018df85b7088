// A pointer does not say how much memory it points to.
#include <leveret/leveret.hpp>

void program(lev::runtime& r, lev::procedure<void(lev::in<float>)> p, const float* x) {
#ifdef RIGHT
  r.submit(p, lev::view(x, 10));
#else
  r.submit(p, x);
#endif
}
