// For MPI programs: a name for the pool of worker processes that the ranks of a node share.
//
//   #include <mpi.h>
//   #include <leveret/leveret.hpp>
//   #include <leveret/mpi.hpp>
//
//   const std::string pool = lev::pool_name(MPI_COMM_WORLD);
//   lev::config c;
//   c.machine = "processes";
//   c.processes.pool = pool.c_str();
//
// Not part of leveret.hpp. The library is not linked with MPI: this header is compiled with the
// program's, which must have included <mpi.h> before.
#ifndef LEVERET_MPI_HPP
#define LEVERET_MPI_HPP

#ifndef MPI_VERSION
#error "include <mpi.h> before <leveret/mpi.hpp>: it is compiled with the MPI of the program"
#endif

#include <leveret/status.hpp>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

namespace lev {

namespace detail {

inline void expect_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw_error(status::unavailable, (std::string("pool_name: ") + call + ": " + text).c_str());
}

// A pool's name is valid only within these Linux namespaces: a container with others has a pool of
// its own. FNV-1a, by Fowler, Noll and Vo.
inline std::uint32_t namespaces_hash() {
  std::uint32_t hash = 2166136261u;
  for (const char* name : {"net", "pid", "user"}) {
    std::error_code ignored;
    const auto link = std::filesystem::read_symlink(std::string("/proc/self/ns/") + name, ignored);
    for (const char c : link.string()) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return hash;
}

inline std::string hexadecimal(std::uint32_t number) {
  std::string digits(8, '0');
  for (std::size_t i = 8; i-- > 0; number >>= 4) digits[i] = "0123456789abcdef"[number & 15];
  return digits;
}

}  // namespace detail

// pool_name() returns a name for config.processes.pool. It is equal for those ranks of `comm` that
// can share worker processes because they are on one node and in one container. It differs from the
// names that all other calls return, of any job or user. Collective: all ranks of `comm` call it,
// in the same order as other collective calls; the runtime may be opened later, or by some of them
// only. Precondition: MPI is initialised, `comm` is an intracommunicator. Throws lev::error:
// bad_argument (MPI_COMM_NULL), unavailable (with MPI's message, if its error handler returns).
// Thread safe as far as MPI is. Cost: a split of the communicator and a broadcast.
inline std::string pool_name(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) {
    detail::throw_error(status::bad_argument,
                        "pool_name: comm is MPI_COMM_NULL; pass MPI_COMM_WORLD");
  }
  MPI_Comm node;
  detail::expect_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
                     "MPI_Comm_split_type");
  // 128 random bits, of the first rank of the node.
  std::random_device random;
  unsigned id[4] = {random(), random(), random(), random()};
  const int code = MPI_Bcast(id, 4, MPI_UNSIGNED, 0, node);
  MPI_Comm_free(&node);
  detail::expect_mpi(code, "MPI_Bcast");
  std::string name = "mpi-";
  for (const unsigned each : id) name += detail::hexadecimal(each);
  return name + "-" + detail::hexadecimal(detail::namespaces_hash());
}

}  // namespace lev

#endif
