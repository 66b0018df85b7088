// The descriptor is an eventfd, whose counter is never read for its value.
#include "bell.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "bindings.hpp"

namespace nb = nanobind;

namespace lev::python {

namespace {

// A number that no file of the program gets by itself: one that closes files that are not its own,
// and opens others, would have those written to. Where the limit on files allows one.
int out_of_the_way(int file) noexcept {
  constexpr int first = 640;  // as share/own_files.cpp: of the 1,024 that are the usual limit
  const int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, first);
  if (moved < 0) return file;
  close(file);
  return moved;
}

}  // namespace

bell::bell() : file_(out_of_the_way(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
  if (file_ >= 0) return;
  PyErr_SetFromErrno(PyExc_OSError);
  throw nb::python_error();
}

bell::~bell() {
  close(file_);
}

void bell::ring() noexcept {
  const std::uint64_t one = 1;
  while (write(file_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void bell::clear() noexcept {
  std::uint64_t rings = 0;
  while (read(file_, &rings, sizeof rings) < 0 && errno == EINTR) {
  }
}

namespace {

// Stands for the end of a list that was struck.
void* over() noexcept {
  static char mark;
  return &mark;
}

}  // namespace

bool chimes::add(std::shared_ptr<bell> b) {
  auto made = std::make_unique<chime>(chime{std::move(b), nullptr});
  made->next = first_.load(std::memory_order_relaxed);
  // Pairs with the acquire in struck(): publishes the chime.
  while (made->next != over() &&
         !first_.compare_exchange_weak(made->next, made.get(), std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  if (made->next == over()) return false;
  made.release();
  return true;
}

chimes::chime* chimes::struck() noexcept {
  auto* end = static_cast<chime*>(over());
  // Pairs with the release in add().
  chime* list = first_.exchange(end, std::memory_order_acquire);
  return list == end ? nullptr : list;
}

void chimes::drop(chime* list) noexcept {
  while (list != nullptr) delete std::exchange(list, list->next);
}

void chimes::strike() noexcept {
  rung_ = struck();
  for (chime* c = rung_; c != nullptr; c = c->next) c->where->ring();
}

void chimes::release() noexcept {
  drop(std::exchange(rung_, nullptr));
}

void bind_bell(nb::module_& m) {
  nb::class_<bell>(m, "Bell", "What an event loop is woken by; see Ticket.__await__().")
      .def(nb::init<>())
      .def("fileno", &bell::fileno, "What the loop watches: readable after a ring.")
      .def("clear", &bell::clear, "Forgets the rings so far.");
}

}  // namespace lev::python
