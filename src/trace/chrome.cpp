// The format is described by the "Trace Event Format" document of the Chromium project: complete
// events ("ph":"X") with times in microseconds.
#include "trace/chrome.hpp"

#include "task/procedure_table.hpp"

namespace lev {

const char* step_name(step s) noexcept {
  static const char* const names[] = {"pass", "stage", "execute", "write_back", "park"};
  return names[static_cast<unsigned>(s)];
}

namespace {

// Names come from users: quote them.
void write_quoted(std::FILE* file, const char* text) noexcept {
  std::fputc('"', file);
  for (const char* c = text; *c != 0; ++c) {
    if (*c == '"' || *c == '\\') {
      std::fprintf(file, "\\%c", *c);
    } else if (static_cast<unsigned char>(*c) < 0x20) {
      std::fprintf(file, "\\u%04x", static_cast<unsigned>(*c));
    } else {
      std::fputc(*c, file);
    }
  }
  std::fputc('"', file);
}

}  // namespace

chrome_writer::chrome_writer(std::FILE* file) noexcept : file_(file) {
  std::fprintf(file_,
               "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":"
               "\"process_name\","
               "\"args\":{\"name\":\"leveret\"}}");
}

void chrome_writer::write_lane(std::uint32_t lane, const char* name,
                               const event_ring& events) noexcept {
  std::fprintf(
      file_,
      ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", lane);
  write_quoted(file_, name);
  std::fprintf(file_, "}}");
  const std::uint32_t kept = events.kept();
  for (std::uint32_t i = 0; i < kept; ++i) {
    const event& e = events.at(i);
    const bool is_task = e.what == step::execute;
    std::fprintf(file_, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"cat\":\"%s\",\"name\":", lane,
                 step_name(e.what));
    write_quoted(file_, is_task ? procedure_name(e.procedure) : step_name(e.what));
    std::fprintf(file_, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"task\":%u}}",
                 static_cast<double>(e.begin_ns) / 1e3,
                 static_cast<double>(e.end_ns - e.begin_ns) / 1e3, e.task);
  }
}

bool chrome_writer::finish() noexcept {
  std::fprintf(file_, "\n]}\n");
  return std::fflush(file_) == 0 && std::ferror(file_) == 0;
}

}  // namespace lev
