// Errors: bad input is refused at submit, with the argument's number and what to do; a task's
// exception arrives at wait.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <cstring>
#include <stdexcept>

void copy(lev::in<char> from, lev::out<char> to) {
  if (from.size() != to.size()) throw std::length_error("copy: sizes differ");
  std::memcpy(to.data(), from.data(), from.size());
}

int main() {
  const auto copy_procedure = lev::define("copy", copy);
  char text[10] = "leveret";
  lev::runtime runtime;

  int refused_argument = -1;
  try {
    runtime.submit(copy_procedure, lev::view(text, 8), lev::view(text + 2, 8)).wait();
  } catch (const lev::error& e) {
    std::printf("%s: %s\n", lev::status_name(e.code()), e.what());
    if (e.code() == lev::status::overlap) refused_argument = e.argument();
  }

  bool caught = false;
  char other[5];
  try {
    runtime.submit(copy_procedure, lev::view(text, 8), lev::view(other, 5)).wait();
  } catch (const std::length_error& e) {
    std::printf("the task threw: %s\n", e.what());
    caught = true;
  }

  lev::ticket again = runtime.submit(copy_procedure, lev::view(text, 8), lev::view(other, 5));
  const lev::outcome outcome = again.wait_outcome();  // the same without exceptions
  return refused_argument == 1 && caught && outcome.code == lev::status::task_failed ? 0 : 1;
}
