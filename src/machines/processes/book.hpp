// book: where worker processes find procedures. A pointer means nothing in another process, so the
// host records in which file a function is, and at which offset. A worker opens that file, unless
// it has it open, and adds the offset. The worker refuses a library whose file was replaced
// meanwhile, because something else may be at that offset. The host program itself is such a file:
// its workers are the same program, started again.
//
// The host writes an entry before it posts the procedure's first task, and never changes it; the
// workers see the book read-only.
#pragma once

#include <leveret/procedure.hpp>

#include "base/assert.hpp"
#include "machine/machine.hpp"
#include "sync/env.hpp"
#include "sync/sleep_lock.hpp"
#include "worker/columns.hpp"

#include <string>
#include <type_traits>
#include <vector>

struct link_map;

namespace lev::processes {

// A place in a file that is loaded into a process.
struct code_place {
  enum : std::uint32_t { nowhere = 0, host_program = 1, first_library = 2 };
  std::uint32_t file = nowhere;
  std::uint64_t offset = 0;
};

// The file that is mapped, which need not be the one that has its name now. All zero: not known.
struct file_identity {
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
};

struct book_entry {
  code_place run;
  code_place context;   // nowhere: null, or made by `rebuild`
  code_place rebuild;   // nowhere: the context needs none
  code_place function;  // for rebuild
  std::uint32_t byte_count = 0;
  unsigned char bytes[portable_context::bytes_max] = {};
  char name[procedure_name_bytes_max + 1] = {};  // for readers of messages
};

static_assert(std::is_trivially_copyable_v<book_entry>);  // another process reads the bytes
static_assert(procedure_count_max <= 0xffff && sizeof(procedure_id) == 2);

struct book {
  static constexpr std::uint32_t libraries_max = 256;
  static constexpr std::size_t path_bytes_max = 1024;

  // Written by the host, read by workers: publishes the libraries below it.
  atomic<std::uint32_t> library_count{0};
  char libraries[libraries_max][path_bytes_max];
  file_identity identities[libraries_max];  // of what the host has loaded
  book_entry entries[procedure_count_max + 1];
};

// book_writer: the host's side. Thread safe.
class book_writer {
 public:
  void open(book* b) noexcept { book_ = b; }

  // has() tells whether the procedure was written; write() writes it. Null, or why it cannot be
  // carried to another process.
  bool has(procedure_id id) const noexcept {
    LEV_DCHECK(id <= procedure_count_max);
    // Pairs with write(). A task is posted after its entry was written.
    return written_[id].load(memory_order_acquire) != known_as::none;
  }
  const char* write(procedure_id id) noexcept;
  // What has() looks at.
  const atomic<std::uint8_t>* written() const noexcept { return written_; }

 private:
  struct sighting;
  static sighting sight(const void* address) noexcept;
  bool note(const sighting& s, code_place* place) noexcept;
  std::uint32_t library_number(const link_map& module) noexcept;

  book* book_ = nullptr;
  sleep_lock<> lock_;  // sections under it ask the file system, never the loader; in host memory
  std::uint32_t library_count_ = 0;  // under lock_
  // Written under lock_, read by submitters: `none` until the entry is there.
  atomic<std::uint8_t> written_[procedure_count_max + 1] = {};
};

// The function that a worker calls.
using resolved = column_watch::callee;

// book_reader: the worker's side. Keeps the libraries it has opened.
class book_reader {
 public:
  explicit book_reader(const book* b) noexcept : book_(b) {}
  ~book_reader();  // closes them
  book_reader(book_reader&&) = delete;
  // find() returns null, or why the procedure cannot be found. Most were found before.
  const char* find(procedure_id id, resolved* found) {
    const resolved* const known = find_known(id);
    if (known == nullptr) [[unlikely]]
      return find_first(id, found);
    *found = *known;
    return nullptr;
  }
  // find_known() returns null where it must be looked up first.
  const resolved* find_known(procedure_id id) const noexcept {
    if (id > procedure_count_max || known_[id].run == nullptr) [[unlikely]]
      return nullptr;
    return &known_[id];
  }

  // For a worker that can open no files later, load_all() opens and keeps every library of the book
  // that has a verdict (trial.hpp), and remembers those that cannot or must not be opened. Returns
  // null, or what is now wrong with this process: a library has started a thread, and had started
  // none when it was tried. From then on has_all_of() tells whether the procedure's libraries were
  // there to be opened; if not, a fresh worker would find them.
  const char* load_all(const std::vector<std::string>& known);
  bool has_all_of(procedure_id id) const noexcept;
  bool has_rebuild(procedure_id id) const noexcept {
    return id <= procedure_count_max && book_->entries[id].rebuild.file != code_place::nowhere;
  }

 private:
  struct library {
    void* handle = nullptr;  // null: not opened yet
    std::uint64_t base = 0;
    std::string why;  // not empty: it could not be opened, or must not be
  };
  const char* find_first(procedure_id id, resolved* found);
  const char* base_of(std::uint32_t file, std::uint64_t* base);
  const char* open_library(std::uint32_t index);
  const char* address_of(const code_place& place, void** address);

  const book* book_;
  library libraries_[book::libraries_max];               // as in the book
  std::uint32_t reachable_count_ = book::libraries_max;  // after load_all(): those that there were
  resolved known_[procedure_count_max + 1];
  char why_[256];
};

}  // namespace lev::processes
