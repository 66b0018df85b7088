// Taking what dead workers have left.
#include "obituaries.hpp"

#include <algorithm>
#include <cstring>

#include "bindings.hpp"
#include "call_port.hpp"
#include "errors.hpp"
#include "view.hpp"

namespace lev::python {

namespace {

// A text that ends at the first zero byte.
std::string text_at(const char* begin, std::size_t most) {
  return {begin, strnlen(begin, most)};
}

}  // namespace

obituaries::obituaries(nb::list pages) {
  pages_.reserve(nb::len(pages));
  for (nb::handle each : pages) {
    pages_.push_back(buffer_of(each, PyBUF_WRITABLE));
    if (static_cast<std::size_t>(pages_.back().len) == page::bytes) continue;
    release_all(pages_);
    raise_value_error("a page has another size");
  }
}

obituaries::~obituaries() {
  close();
}

void obituaries::close() noexcept {
  std::vector<Py_buffer> given;
  {
    const std::lock_guard lock(mutex_);
    given.swap(pages_);
  }
  release_all(given);
}

void obituaries::tell(call_port* port) noexcept {
  const std::lock_guard lock(mutex_);
  port_ = port;
}

void obituaries::read(int worker, int how) {
  auto* begin = static_cast<char*>(pages_[static_cast<std::size_t>(worker)].buf);
  death d{worker, how, {begin, page::head_bytes}, {}, {}};
  std::uint64_t used = 0;  // the worker's word: it may be anything
  std::memcpy(&used, begin + page::used_at, sizeof used);
  used = std::min<std::uint64_t>(used, page::text_at - page::head_bytes);
  d.notes.assign(begin + page::head_bytes, used);
  d.text = text_at(begin + page::text_at, page::bytes - page::text_at);
  // The successor finds a page as it was at first, but for what it goes on with.
  std::memset(begin + page::kept_bytes, 0, page::head_bytes - page::kept_bytes);
  std::memset(begin + page::text_at, 0, d.text.size());
  deaths_.push_back(std::move(d));
  has_any_.store(true, std::memory_order_relaxed);
}

// On the runtime's own thread, without the GIL.
void obituaries::on_death(void* self, int worker, int how) noexcept {
  auto& o = *static_cast<obituaries*>(self);
  const std::lock_guard lock(o.mutex_);
  if (worker < 0 || static_cast<std::size_t>(worker) >= o.pages_.size()) return;
  try {
    o.read(worker, how);
  } catch (...) {  // no memory for last words: the status of the call says enough
  }
  if (o.port_ != nullptr) o.port_->call_courier();
}

nb::list obituaries::take() {
  std::vector<death> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(deaths_);
    has_any_.store(false, std::memory_order_relaxed);
  }
  const auto bytes = [](const std::string& s) { return nb::bytes(s.data(), s.size()); };
  nb::list all;
  for (const death& d : taken)
    all.append(nb::make_tuple(d.worker, d.how, bytes(d.head), bytes(d.notes), bytes(d.text)));
  return all;
}

void bind_obituaries(nb::module_& m) {
  nb::class_<obituaries>(m, "Obituaries", "What dead workers leave; see leveret.executor.mortem.")
      .def(nb::init<nb::list>(), nb::arg("pages"))
      .def("take", &obituaries::take,
           "(worker, how, head, notes, text) of each death since the last call.")
      .def("close", &obituaries::close, "Gives the pages back; the runtime must be closed.")
      .def_prop_ro("has_any", &obituaries::has_any, "Whether take() has something.");
}

}  // namespace lev::python
