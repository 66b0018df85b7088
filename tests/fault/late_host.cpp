// A program without Leveret that opens a library which has one, given as its argument, and asks it
// for worker processes. If it is started again, it says so.
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  std::puts("main begins");
  std::fflush(stdout);
  if (count != 2) return 1;
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 2;
  const auto why = reinterpret_cast<const char* (*)()>(dlsym(library, "why_no_processes"));
  if (why == nullptr) return 3;
  std::puts(why());
}
