// Applications whose tasks fetch data themselves do not run where tasks cannot.
#pragma once

#include <cstdio>
#include <cstring>
#include <leveret/leveret.hpp>

namespace leveret_apps {

// Throws lev::error, not_supported. Tasks in worker processes have no this_task().
inline void need_far_memory(const lev::runtime& runtime, const char* application) {
  if (std::strcmp(runtime.machine(), "processes") != 0) return;
  char message[160];
  std::snprintf(message, sizeof message,
                "%s: its tasks fetch data themselves, which those of the machine 'processes' "
                "cannot; take 'threads' or 'sim'",
                application);
  throw lev::error(lev::status::not_supported, -1, message);
}

}  // namespace leveret_apps
