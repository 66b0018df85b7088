// The arguments and the environment that a zygote starts with.
#include "machines/processes/start_strings.hpp"

#include "machines/processes/zygote.hpp"
#include "share/role.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

extern char** environ;

namespace lev::processes {

namespace {

// A variable that tells a zygote its socket is not passed on: the zygote would find it in place of
// the new one.
bool is_of_zygotes(std::string_view variable) noexcept {
  for (const std::string_view name : {zygote_variable, worker_program_variable}) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) return true;
  }
  return false;
}

bool is_needed(std::string_view variable) noexcept {
  const std::size_t equals = variable.find('=');
  if (equals == variable.npos) return false;
  const std::string_view name = variable.substr(0, equals);
  const std::string_view value = variable.substr(equals + 1);
  for (const char* needed : {"LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONHOME"}) {
    if (name == needed) return true;
  }
  constexpr std::size_t digits_max = 4;
  return name.ends_with("_NUM_THREADS") && !value.empty() && value.size() <= digits_max &&
         value.find_first_not_of("0123456789") == value.npos;
}

}  // namespace

std::vector<char*> environment_for(isolation level, char* own) {
  std::vector<char*> all;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const bool is_for_it = level != isolation::confined || is_needed(*e);
    if (is_for_it && !is_of_zygotes(*e)) all.push_back(*e);
  }
  all.push_back(own);
  all.push_back(nullptr);
  return all;
}

bool forget_start() noexcept {
  static char* none[] = {nullptr};
  environ = none;
  std::FILE* f = std::fopen("/proc/self/stat", "re");
  if (f == nullptr) return false;
  char text[1024];
  text[std::fread(text, 1, sizeof text - 1, f)] = 0;
  std::fclose(f);
  // Numbers follow the program's name, which may hold anything: 45 of no interest, then the
  // beginning and end of the arguments, and of the environment.
  constexpr int passed_over = 45;
  const char* at = std::strrchr(text, ')');
  for (int i = 0; at != nullptr && i <= passed_over; ++i) at = std::strchr(at + 1, ' ');
  std::uintptr_t places[4] = {};
  if (at == nullptr ||
      std::sscanf(at, "%lu %lu %lu %lu", &places[0], &places[1], &places[2], &places[3]) != 4)
    return false;
  for (int i = 0; i < 4; i += 2) {
    const std::size_t bytes = places[i + 1] - places[i];
    if (places[i] != 0 && places[i] < places[i + 1])
      std::memset(reinterpret_cast<void*>(places[i]), 0, bytes);
  }
  return true;
}

}  // namespace lev::processes
