// Making and keeping blocks of shared memory. All of it with the GIL held.
#include "shared.hpp"

#include <bit>
#include <cstring>
#include <leveret/shared.hpp>
#include <map>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "session.hpp"
#include "view.hpp"

namespace lev::python {

namespace {

constexpr std::size_t kept_bytes_max = std::size_t{64} << 20;
constexpr std::size_t block_bytes_min = 4096;
constexpr unsigned classes = 48;

// Blocks nobody uses, by size class: that of class i has 2^i bytes.
struct kept_blocks {
  std::vector<void*> of[classes];
  std::size_t bytes = 0;
};
kept_blocks& kept() {
  static auto* all = new kept_blocks;  // blocks may be dropped while the interpreter ends
  return *all;
}

// Blocks in use, by where they begin.
std::map<std::uintptr_t, shared_block*>& used() {
  static auto* all = new std::map<std::uintptr_t, shared_block*>;
  return *all;
}

shared_block* find_block(std::uintptr_t address) {
  auto next = used().upper_bound(address);
  if (next == used().begin()) return nullptr;
  const auto& [begin, block] = *--next;
  return address - begin < block->bytes() ? block : nullptr;
}

unsigned class_of(std::size_t bytes) {
  return static_cast<unsigned>(std::bit_width(bytes - 1));
}

std::size_t rounded(std::size_t bytes) {
  if (bytes < block_bytes_min) return block_bytes_min;
  // Above the largest block that is kept, nothing is gained by rounding.
  return bytes > kept_bytes_max ? bytes : std::size_t{1} << class_of(bytes);
}

// One that is kept, or a new one; null when there is no memory.
void* taken_or_made(std::size_t bytes, bool is_cleared) {
  const std::size_t size = rounded(bytes);
  if (size <= kept_bytes_max) {
    std::vector<void*>& free = kept().of[class_of(size)];
    if (!free.empty()) {
      void* data = free.back();
      free.pop_back();
      kept().bytes -= size;
      if (is_cleared) std::memset(data, 0, bytes);
      return data;
    }
  }
  const gil_released released;
  return is_cleared ? shared_allocate(size) : shared_allocate_for_overwrite(size);
}

// Whether all of an array lies in shared memory. False, too, for what has no buffer of this kind.
bool is_array_shared(nb::handle array) {
  Py_buffer b;
  if (PyObject_GetBuffer(array.ptr(), &b, PyBUF_STRIDES) != 0) return PyErr_Clear(), false;
  const char* low = static_cast<const char*>(b.buf);
  const bool is_packed = b.shape == nullptr || b.strides == nullptr;  // as those of ctypes say it
  const char* high = low + (is_packed ? b.len : b.itemsize);
  for (int i = 0; !is_packed && i < b.ndim; ++i)
    (b.strides[i] < 0 ? low : high) += (b.shape[i] - 1) * b.strides[i];
  const bool is_there = b.len != 0 && is_shared(low, static_cast<std::size_t>(high - low));
  PyBuffer_Release(&b);
  return is_there;
}

PyType_Slot block_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&give_buffer<shared_block>)},
                             {0, nullptr}};

}  // namespace

void forget_kept_blocks() noexcept {
  for (std::vector<void*>& each : kept().of) each.clear();
  kept().bytes = 0;
}

shared_block::shared_block(std::size_t bytes, bool is_cleared, bool is_array)
    : data_(nullptr), bytes_(bytes), forks_(fork_count()), is_array_(is_array) {
  if (bytes == 0) bytes_ = bytes = 1;
  data_ = taken_or_made(bytes, is_cleared);
  if (data_ == nullptr) raise_status(status::out_of_memory, shared_shortage());
  used()[reinterpret_cast<std::uintptr_t>(data_)] = this;
}

shared_block::~shared_block() {
  used().erase(reinterpret_cast<std::uintptr_t>(data_));
  if (forks_ != fork_count()) return;  // the parent's
  const std::size_t size = rounded(bytes_);
  if (size <= kept_bytes_max && kept().bytes + size <= kept_bytes_max) {
    kept().of[class_of(size)].push_back(data_);
    kept().bytes += size;
  } else {
    shared_free(data_);
  }
}

void bind_shared(nb::module_& m) {
  nb::class_<shared_block>(m, shared_block::python_name, nb::type_slots(block_slots),
                           nb::is_weak_referenceable(),
                           "Shared memory, with the buffer protocol. See leveret.shared_array().")
      .def(nb::init<std::size_t, bool, bool>(), nb::arg("size"), nb::arg("clear") = true,
           nb::arg("is_array") = false)
      .def_prop_ro(
          "address",
          [](const shared_block& b) { return reinterpret_cast<std::uintptr_t>(b.data()); },
          "Where it begins, here and in every worker process.")
      .def_prop_ro("size", &shared_block::bytes, "Bytes.")
      .def_prop_ro("is_array", &shared_block::is_array,
                   "Whether it is that of a shared_array(), which other processes may write to.");
  m.def(
      "block_at",
      [](std::uintptr_t address) {
        shared_block* block = find_block(address);
        return block == nullptr ? nb::none() : nb::find(*block);
      },
      nb::arg("address"), nb::sig("def block_at(address: int) -> SharedBlock | None"),
      "The block of this process's own in which an address lies.");
  m.def(
      "is_shared",
      [](std::uintptr_t address, std::size_t size) {
        return is_shared(reinterpret_cast<const void*>(address), size);
      },
      nb::arg("address"), nb::arg("size"), "Whether those bytes lie in shared memory.");
  m.def(
      "copy_shared",
      [](nb::handle to, nb::handle from) {
        const view target(to, PyBUF_WRITABLE);
        const view source(from, PyBUF_SIMPLE);
        if (source.bytes() > target.bytes())
          raise_value_error("there is no room for so many bytes");
        shared_copy(target.data(), source.data(), source.bytes());
      },
      nb::arg("to"), nb::arg("from_"),
      "Copies bytes to where another process reads them next; the buffers must not overlap.");
  m.def("is_array_shared", &is_array_shared, nb::arg("array"),
        "Whether all bytes of a NumPy array lie in shared memory.");
  m.def(
      "memory_at",
      [](std::uintptr_t address, std::size_t size) {
        return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(address),
                                                 static_cast<Py_ssize_t>(size), PyBUF_WRITE));
      },
      nb::arg("address"), nb::arg("size"),
      nb::sig("def memory_at(address: int, size: int) -> memoryview"),
      "A view of memory that somebody else keeps alive.");
}

}  // namespace lev::python
