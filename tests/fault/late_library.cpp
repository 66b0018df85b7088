// A library that a program opens when its workers are confined already.
#include <leveret/procedure.hpp>

#include <cstring>

extern "C" int fault_triple(const lev::call& c) {
  std::int64_t value;
  std::memcpy(&value, &c.arguments[0].address, sizeof value);
  value *= 3;
  std::memcpy(reinterpret_cast<void*>(c.arguments[1].address), &value, sizeof value);
  return 0;
}

// How often this was called, in this process and of this file.
extern "C" int fault_calls(const lev::call& c) {
  static std::int64_t calls = 0;
  ++calls;
  std::memcpy(reinterpret_cast<void*>(c.arguments[0].address), &calls, sizeof calls);
  return 0;
}
