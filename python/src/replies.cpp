// Plain replies: read and checked in the host, written in the worker. Python takes 2 us for either,
// which is a tenth of a short call.
#include "replies.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "bindings.hpp"
#include "view.hpp"

namespace lev::python {

namespace {

// REPLY of wire/pickling.py, which is packed without gaps.
constexpr std::size_t at_check = 0, at_kind = 4, at_count = 8, at_length = 12, at_ns = 20,
                      at_size = 28, head_bytes = 36;
// Kinds up to BROKEN hold a pickle. IN_FILE and what is NOTED is Python's to read.
constexpr std::uint32_t kind_max = 2;

// CRC-32 as zlib has it: a byte at a time, as plain replies have some dozens.
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}

std::uint32_t check_of(const char* begin, const char* end) noexcept {
  static constexpr std::array<std::uint32_t, 256> table = make_table();
  std::uint32_t c = 0xFFFFFFFFu;
  for (; begin != end; ++begin)
    c = table[(c ^ static_cast<unsigned char>(*begin)) & 0xFF] ^ (c >> 8);
  c = ~c;
  return c == 0 ? 1 : c;  // memory that nobody wrote is no reply
}

template <class T>
T read_at(const char* place) noexcept {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

template <class T>
void write_at(char* place, T value) noexcept {
  std::memcpy(place, &value, sizeof value);
}

}  // namespace

nb::object plain_reply(const char* place, std::size_t bytes) {
  if (bytes < head_bytes) return {};
  const auto kind = read_at<std::uint32_t>(place + at_kind);
  const auto length = read_at<std::int64_t>(place + at_length);
  if (kind > kind_max || read_at<std::uint32_t>(place + at_count) != 0) return {};
  if (length < 0 || static_cast<std::uint64_t>(length) > bytes - head_bytes) return {};
  const char* pickled = place + head_bytes;
  if (read_at<std::uint32_t>(place + at_check) != check_of(place + at_kind, pickled + length))
    return {};
  return nb::make_tuple(kind, nb::bytes(pickled, static_cast<std::size_t>(length)),
                        read_at<std::int64_t>(place + at_ns),
                        read_at<std::int64_t>(place + at_size));
}

std::size_t write_plain_reply(char* place, std::size_t room, unsigned kind, const char* pickled,
                              std::size_t bytes, long long ns) {
  if (room < head_bytes || bytes > room - head_bytes) return 0;
  const std::size_t size = head_bytes + bytes;
  write_at<std::uint32_t>(place + at_kind, kind);
  write_at<std::uint32_t>(place + at_count, 0);
  write_at<std::int64_t>(place + at_length, static_cast<std::int64_t>(bytes));
  write_at<std::int64_t>(place + at_ns, ns);
  write_at<std::int64_t>(place + at_size, static_cast<std::int64_t>(size));
  std::memcpy(place + head_bytes, pickled, bytes);
  write_at<std::uint32_t>(place + at_check, check_of(place + at_kind, place + size));
  return size;
}

void bind_replies(nb::module_& m) {
  m.def(
      "write_plain_reply",
      [](nb::handle place, unsigned kind, nb::bytes pickled, long long ns) {
        const view to(place, PyBUF_WRITABLE);
        return write_plain_reply(to.data(), to.bytes(), kind, pickled.c_str(), pickled.size(), ns);
      },
      nb::arg("place"), nb::arg("kind"), nb::arg("pickled"), nb::arg("ns"),
      "Writes a reply without buffers; its size, or 0: there is no room for it.");
  m.def(
      "read_plain_reply",
      [](nb::handle place) -> nb::object {
        const view from(place, PyBUF_SIMPLE);
        nb::object read = plain_reply(from.data(), from.bytes());
        return read.is_valid() ? read : nb::none();
      },
      nb::arg("place"),
      nb::sig("def read_plain_reply(place: object) -> tuple[int, bytes, int, int] | None"),
      "(kind, pickle, nanoseconds, bytes) of a reply without buffers; None: it is another, or is "
      "not as it was written.");
}

}  // namespace lev::python
