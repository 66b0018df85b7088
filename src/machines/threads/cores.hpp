// Which cores this process may use.
#ifndef LEVERET_MACHINES_THREADS_CORES_HPP
#define LEVERET_MACHINES_THREADS_CORES_HPP

namespace lev {

// core_at() returns the system's number of the i-th core this process may use; -1 when there are
// fewer.
int core_at(unsigned index) noexcept;
// bind_to_core() keeps the calling thread on one core; failure is harmless and ignored.
void bind_to_core(int core) noexcept;

}  // namespace lev

#endif
