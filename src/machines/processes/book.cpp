// Records where procedures are, and finds them again in another process.
#include "machines/processes/book.hpp"

#include "machines/processes/confine.hpp"
#include "machines/processes/program.hpp"
#include "machines/processes/trial.hpp"
#include "share/faults.hpp"
#include "sync/uncancelled.hpp"
#include "task/procedure_table.hpp"
#include "task/slot.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lev::processes {

namespace {

// Whether an address is in the main program, even if no loader knows it.
bool is_in_program(const void* address) noexcept {
  const program_segments program = segments_of_program();
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - program.base;
  for (const auto& segment : program) {
    if (segment.p_type == PT_LOAD && offset - segment.p_vaddr < segment.p_memsz) return true;
  }
  return false;
}

// The system's list of mappings tells a file from another one that has taken its name. `path`, if
// it is not null, gets the name that the file has now, unless that is too long. The list is asked
// for by this thread: a process whose main thread has ended has none by its own name.
using file_path = char[book::path_bytes_max];
file_identity identity_of(const void* address, file_path* path = nullptr) noexcept {
  file_identity found;
  std::FILE* mappings = std::fopen("/proc/thread-self/maps", "re");
  if (mappings == nullptr) return found;
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  char* line = nullptr;
  std::size_t size = 0;
  while (getline(&line, &size, mappings) > 0) {
    std::uintptr_t begin = 0, end = 0;
    file_identity file;
    int length = 0;
    if (std::sscanf(
            line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
            &begin, &end, &file.device_major, &file.device_minor, &file.inode, &length) != 5)
      continue;
    if (place < begin || place >= end) continue;
    found = file;
    const std::size_t bytes = std::strcspn(line + length, "\n");
    if (path != nullptr && bytes < sizeof *path)
      std::snprintf(*path, sizeof *path, "%.*s", static_cast<int>(bytes), line + length);
    break;
  }
  std::free(line);
  std::fclose(mappings);
  return found;
}

// One that is not known may be any file.
bool is_other_file(const file_identity& a, const file_identity& b) noexcept {
  if (a.inode == 0 || b.inode == 0) return false;
  return a.inode != b.inode || a.device_major != b.device_major || a.device_minor != b.device_minor;
}

}  // namespace

// A file that has taken the place of another one is a library of its own. The loader knows each by
// the name by which it was opened; a relative one means nothing in another working directory, and a
// worker is in another. The address to be located does not tell the file: data that is 0 at first
// lies in memory of no file.
std::uint32_t book_writer::library_number(const link_map& module) noexcept {
  file_path now = {};
  const file_identity file = identity_of(module.l_ld, &now);
  const char* const path = module.l_name[0] != '/' && now[0] == '/' ? now : module.l_name;
  file_path full;
  char* resolved_path = realpath(path, nullptr);
  const int length = std::snprintf(full, sizeof full, "%s", resolved_path ? resolved_path : path);
  std::free(resolved_path);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof full) return 0;
  for (std::uint32_t i = 0; i < library_count_; ++i) {
    if (std::strcmp(book_->libraries[i], full) == 0 && !is_other_file(book_->identities[i], file))
      return i + code_place::first_library;
  }
  LEV_ASSERT(library_count_ <= book::libraries_max);
  if (library_count_ == book::libraries_max) return 0;
  std::memcpy(book_->libraries[library_count_], full, sizeof full);
  book_->identities[library_count_] = file;
  ++library_count_;
  // Pairs with try_libraries().
  book_->library_count.store(library_count_, memory_order_release);
  return library_count_ - 1 + code_place::first_library;
}

// Where an address is, as far as the loader knows it. The loader may be in a dlopen() of another
// thread, and wait for a constructor that submits a task: it is asked under no lock of the book.
struct book_writer::sighting {
  bool is_found = true;
  const link_map* library = nullptr;  // null: the place is in the program, or nowhere
  code_place place;
};

book_writer::sighting book_writer::sight(const void* address) noexcept {
  sighting s;
  if (address == nullptr) return s;
  s.place.file = code_place::host_program;
  const link_map* const map = module_of(address);
  if (map == nullptr) {
    s.is_found = is_in_program(address);
    s.place.offset = reinterpret_cast<std::uintptr_t>(address) - segments_of_program().base;
    return s;
  }
  if (map->l_name[0] != 0 && map->l_prev != nullptr) s.library = map;
  s.place.offset = reinterpret_cast<std::uintptr_t>(address) - map->l_addr;
  return s;
}

// False: no worker could find the place.
bool book_writer::note(const sighting& s, code_place* place) noexcept {
  *place = s.is_found ? s.place : code_place{};
  if (s.library != nullptr) place->file = library_number(*s.library);
  return s.is_found && (s.library == nullptr || place->file != code_place::nowhere);
}

const char* book_writer::write(procedure_id id) noexcept {
  LEV_ASSERT(id != 0 && id <= procedure_count_max);
  const uncancelled now;  // a host is in its first submit of the procedure
  const procedure_info& info = procedure_at(id).info;
  const portable_context* p = info.portable;
  const sighting run = sight(reinterpret_cast<void*>(info.run));
  const sighting context = sight(p == nullptr ? info.context : nullptr);
  const sighting rebuild = sight(p == nullptr ? nullptr : reinterpret_cast<void*>(p->rebuild));
  const sighting function = sight(p == nullptr ? nullptr : p->function);
  const char* why = nullptr;
  const sleep_guard held(lock_);
  // Another thread was first, so workers may be reading the entry.
  if (has(id)) return nullptr;
  book_entry& e = book_->entries[id];
  if (!note(run, &e.run)) {
    why = "its code is in no file that a worker process could load";
  } else if (!note(context, &e.context)) {
    why = "its context is on the heap or the stack; give procedure_info::portable";
  } else if (!note(rebuild, &e.rebuild) || !note(function, &e.function)) {
    why =
        "the function behind it is in no file that a worker process could load (compiled at run "
        "time?)";
  } else if (p != nullptr && p->byte_count > portable_context::bytes_max) {
    why = "its portable context has more than 512 bytes";
  } else {
    if (p != nullptr) {
      e.byte_count = p->byte_count;
      if (p->byte_count != 0) std::memcpy(e.bytes, p->bytes, p->byte_count);
    }
    std::snprintf(e.name, sizeof e.name, "%s", info.name);
    const procedure_entry& entry = procedure_at(id);
    const bool is_near = entry.addresses == 0 && entry.info.kind_count <= near_arguments;
    // Pairs with has(): the entry is there.
    written_[id].store(is_near ? known_as::of_near_values : known_as::any, memory_order_release);
  }
  return why;
}

book_reader::~book_reader() {
  for (const library& l : libraries_) {
    if (l.handle != nullptr) dlclose(l.handle);
  }
}

const char* book_reader::open_library(std::uint32_t index) {
  LEV_ASSERT(index < book::libraries_max && libraries_[index].handle == nullptr);
  void* const handle = fault_at("worker.open_library")
                           ? nullptr
                           : dlopen(book_->libraries[index], RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    std::snprintf(why_, sizeof why_, "%s", why == nullptr ? "dlopen failed" : why);
    return why_;
  }
  const link_map* map = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &map);
  LEV_ASSERT(map != nullptr);  // the library is open
  if (!is_other_file(identity_of(map->l_ld), book_->identities[index])) {
    libraries_[index].handle = handle;
    libraries_[index].base = map->l_addr;
    return nullptr;
  }
  dlclose(handle);
  constexpr std::size_t shown_max = 80;  // the end of the path
  const char* path = book_->libraries[index];
  const std::size_t bytes = std::strlen(path);
  std::snprintf(why_, sizeof why_,
                "%s was replaced after the program had loaded it; start the program again, or load "
                "the new one from another path",
                path + (bytes > shown_max ? bytes - shown_max : 0));
  return why_;
}

const char* book_reader::load_all(const std::vector<std::string>& known) {
  LEV_ASSERT(reachable_count_ == book::libraries_max && known.size() <= book::libraries_max);
  reachable_count_ = static_cast<std::uint32_t>(known.size());
  for (std::uint32_t i = 0; i < reachable_count_; ++i) {
    std::string& why_not = libraries_[i].why = known[i];
    if (!why_not.empty()) continue;
    if (const char* why = open_library(i)) {
      why_not = why;
    } else if (!is_alone()) {
      why_not = refusal_for_threads(book_->libraries[i]);
      return why_not.c_str();
    }
  }
  return nullptr;
}

bool book_reader::has_all_of(procedure_id id) const noexcept {
  if (id > procedure_count_max || known_[id].run != nullptr) return true;
  const book_entry& e = book_->entries[id];
  for (const code_place& place : {e.run, e.context, e.rebuild, e.function}) {
    if (place.file >= code_place::first_library + reachable_count_) return false;
  }
  return true;
}

const char* book_reader::base_of(std::uint32_t file, std::uint64_t* base) {
  if (file == code_place::host_program) return *base = segments_of_program().base, nullptr;
  LEV_ASSERT(file >= code_place::first_library);
  const std::uint32_t index = file - code_place::first_library;
  if (index >= book::libraries_max) return "the book of procedures is damaged";
  if (index >= reachable_count_) return "its library was loaded after this worker was confined";
  const library& l = libraries_[index];
  if (!l.why.empty()) return l.why.c_str();
  if (l.handle == nullptr) {
    if (const char* why = open_library(index)) return why;
  }
  *base = l.base;
  return nullptr;
}

const char* book_reader::address_of(const code_place& place, void** address) {
  *address = nullptr;
  if (place.file == code_place::nowhere) return nullptr;
  std::uint64_t base = 0;
  if (const char* why = base_of(place.file, &base)) return why;
  *address = reinterpret_cast<void*>(base + place.offset);
  return nullptr;
}

const char* book_reader::find_first(procedure_id id, resolved* found) {
  if (id == 0 || id > procedure_count_max) return "the record names no procedure";
  const book_entry& e = book_->entries[id];
  void* run = nullptr;
  void* context = nullptr;
  void* rebuild = nullptr;
  void* function = nullptr;
  const char* why = address_of(e.run, &run);
  if (why == nullptr) why = address_of(e.context, &context);
  if (why == nullptr) why = address_of(e.rebuild, &rebuild);
  if (why == nullptr) why = address_of(e.function, &function);
  if (why != nullptr) return why;
  if (run == nullptr) return "the book has no entry for the procedure";
  if (rebuild != nullptr) {
    using rebuilder = void* (*)(const void*, unsigned, void*);
    try {
      context = reinterpret_cast<rebuilder>(rebuild)(e.bytes, e.byte_count, function);
    } catch (...) {
      return "rebuild() of its portable context threw an exception";
    }
  }
  known_[id] = {reinterpret_cast<body>(run), context};
  *found = known_[id];
  return nullptr;
}

}  // namespace lev::processes
