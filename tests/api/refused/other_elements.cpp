// The elements are of the type that the procedure declares: nothing is converted.
#include <leveret/leveret.hpp>

#include <vector>

#ifdef RIGHT
using data = std::vector<float>;
#else
using data = std::vector<double>;
#endif

void program(lev::runtime& r, lev::procedure<void(lev::in<float>)> p, data& x) {
  r.submit(p, x);
}
