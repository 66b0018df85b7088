// The format is described by the "Trace Event Format" document of the Chromium project: complete
// events ("ph":"X") with times in microseconds.
#include "trace/chrome.hpp"

#include "base/numbers.hpp"
#include "base/utf8.hpp"
#include "task/procedure_table.hpp"

#include <cstring>

namespace lev {

static const char* step_name(step s) noexcept {
  static const char* const names[] = {"pass", "stage", "execute", "write_back", "park"};
  return names[static_cast<unsigned>(s)];
}

namespace {

// More than the number of participants with a lane.
constexpr std::uint32_t lanes_per_context = 2048;

// Names come from users: quote them. JSON is UTF-8; invalid bytes become the replacement character.
void write_quoted(std::FILE* file, const char* text) noexcept {
  std::fputc('"', file);
  const char* const end = text + std::strlen(text);
  std::size_t bytes = 1;
  for (const char* c = text; c != end; c += bytes) {
    const character one = character_at(c, static_cast<std::size_t>(end - c));
    bytes = larger<std::size_t>(one.bytes, 1);
    if (one.bytes == 0) {
      std::fprintf(file, "\\ufffd");
    } else if (bytes > 1) {
      std::fwrite(c, 1, bytes, file);
    } else if (*c == '"' || *c == '\\') {
      std::fprintf(file, "\\%c", *c);
    } else if (static_cast<unsigned char>(*c) < 0x20) {
      std::fprintf(file, "\\u%04x", static_cast<unsigned>(*c));
    } else {
      std::fputc(*c, file);
    }
  }
  std::fputc('"', file);
}

// A time in microseconds, written as whole number and rest: it has a point in every locale.
void write_us(std::FILE* file, const char* name, std::uint64_t ns) noexcept {
  std::fprintf(file, "%s%llu.%03u", name, static_cast<unsigned long long>(ns / 1000),
               static_cast<unsigned>(ns % 1000));
}

}  // namespace

chrome_writer::chrome_writer(std::FILE* file) noexcept : file_(file) {
  std::fprintf(file_,
               "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":"
               "\"process_name\","
               "\"args\":{\"name\":\"leveret\"}}");
}

void chrome_writer::write_name(std::uint32_t lane, const char* name) noexcept {
  std::fprintf(
      file_,
      ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", lane);
  write_quoted(file_, name);
  std::fprintf(file_, "}}");
}

void chrome_writer::write_event(std::uint32_t lane, const event& e) noexcept {
  const bool is_task = e.what == step::execute;
  std::fprintf(file_, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"cat\":\"%s\",\"name\":", lane,
               step_name(e.what));
  write_quoted(file_, is_task ? procedure_name(e.procedure) : step_name(e.what));
  write_us(file_, ",\"ts\":", e.begin_ns);
  write_us(file_, ",\"dur\":", e.end_ns - e.begin_ns);
  std::fprintf(file_, ",\"args\":{\"task\":%u}}", e.task);
}

void chrome_writer::write_lanes(std::uint32_t lane, const char* name,
                                const event_ring& events) noexcept {
  write_name(lane, name);
  std::uint32_t named = 1;  // one bit a context
  const std::uint32_t kept = events.kept();
  for (std::uint32_t i = 0; i < kept; ++i) {
    const event e = events.at(i);
    const std::uint32_t own_lane = lane + e.context * lanes_per_context;
    if ((named & 1u << e.context) == 0) {
      char own_name[48];
      std::snprintf(own_name, sizeof own_name, "%s, context %u", name, unsigned{e.context});
      write_name(own_lane, own_name);
      named |= 1u << e.context;
    }
    write_event(own_lane, e);
  }
}

bool chrome_writer::finish() noexcept {
  std::fprintf(file_, "\n]}\n");
  return std::fflush(file_) == 0 && std::ferror(file_) == 0;
}

}  // namespace lev
