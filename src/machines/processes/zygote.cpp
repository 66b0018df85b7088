// How the host program, or its worker_command, becomes the parent of workers.
#include "machines/processes/zygote.hpp"

#include "machines/processes/berth.hpp"
#include "machines/processes/program.hpp"
#include "share/role.hpp"

#include <elf.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace lev::processes {

const char* const zygote_variable = started_again_variable;
const char* const zygote_name = "leveret-zygote";

using initialiser = void (*)(int, char**, char**);

// The program's constructors, as the linker notes them in an executable: null in a shared library.
[[gnu::weak,
  gnu::visibility("hidden")]] extern initialiser first_constructor[] __asm__("__init_array_start");
[[gnu::weak,
  gnu::visibility("hidden")]] extern initialiser last_constructor[] __asm__("__init_array_end");

namespace {

void become_zygote(int argc, char** argv, char** environment);

struct initialisers {
  initialiser* begin = nullptr;
  initialiser* end = nullptr;
};

// The constructors of a loaded module, as its dynamic section lists them.
initialisers constructors_of(const link_map& module) noexcept {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  for (const ElfW(Dyn)* d = module.l_ld; d != nullptr && d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_INIT_ARRAY) begin = module.l_addr + d->d_un.d_ptr;
    if (d->d_tag == DT_INIT_ARRAYSZ) bytes = d->d_un.d_val;
  }
  if (begin == 0) return {};
  auto* first = reinterpret_cast<initialiser*>(begin);
  return {first, first + bytes / sizeof(initialiser)};
}

// The remaining constructors: those of this file's module, and, if that is a shared library, the
// program's. A task's body finds its static objects made, as in the host.
void run_other_constructors(int argc, char** argv, char** environment) {
  const link_map* const own = module_of(reinterpret_cast<void*>(&become_zygote));
  // A fully static program has no loader that knows it.
  const initialisers ours =
      own != nullptr ? constructors_of(*own) : initialisers{first_constructor, last_constructor};
  initialiser* next = ours.begin;
  while (next != ours.end && *next != &become_zygote) ++next;
  if (next != ours.end) ++next;
  for (; next != ours.end; ++next) (*next)(argc, argv, environment);
  if (own == nullptr) return;
  const link_map* const program = program_of(own);
  if (program == own) return;
  const initialisers theirs = constructors_of(*program);
  for (next = theirs.begin; next != theirs.end; ++next) (*next)(argc, argv, environment);
}

// The host has the terminal, if it has one, and these processes are in the background there. A body
// that prints to it, or asks something of it, would stop its worker for good where the terminal is
// set so (stty tostop). As these signals are ignored, it prints, and a read is an error (EIO).
void go_on_without_terminal() noexcept {
  std::signal(SIGTTOU, SIG_IGN);
  std::signal(SIGTTIN, SIG_IGN);
}

// Runs while the program loads. In every program but a zygote it looks for one variable and
// returns. A program that a host has started, and whose socket cannot be trusted, must not reach
// its main(), which would do everything once more. That needs no trust in the variable: a user who
// sets it and the name starts a program that ends.
[[gnu::constructor]] void become_zygote(int argc, char** argv, char** environment) {
  const int socket = role() == process_role::starting ? host_socket(zygote_variable) : -1;
  if (socket < 0) {
    const bool is_meant = argc > 0 && std::strcmp(argv[0], zygote_name) == 0;
    if (is_meant && std::getenv(zygote_variable) != nullptr) _exit(1);
    return;
  }
  take_role(process_role::starting);
  unsetenv(zygote_variable);
  go_on_without_terminal();  // the constructors may print, too
  run_other_constructors(argc, argv, environment);
  run_zygote(socket, {});
}

}  // namespace

}  // namespace lev::processes

namespace lev {

void run_worker_program(const fork_hooks& hooks) noexcept {
  const int socket = role() == process_role::starting ? host_socket(worker_program_variable) : -1;
  if (socket < 0) return;
  unsetenv(worker_program_variable);
  processes::go_on_without_terminal();
  processes::run_zygote(socket, hooks);
}

}  // namespace lev
