// Registration and look-up of procedures.
#include "task/procedure_table.hpp"

#include "base/assert.hpp"
#include "base/first_constructor.hpp"
#include "sync/spin_lock.hpp"
#include "task/arguments.hpp"
#include "task/plain.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstring>

namespace lev {

constinit procedure_table procedures;

namespace {

constinit spin_lock<> registration;

// A fork() waits until no thread registers: in the child the table is whole, and its lock is free.
[[gnu::constructor(first_constructor)]] void lock_for_forks() {
  constexpr auto unlock = [] { registration.unlock(); };
  pthread_atfork([] { registration.lock(); }, unlock, unlock);
}

procedure_id find(std::uint32_t count, const char* name) noexcept {
  for (std::uint32_t id = 1; id < count; ++id) {
    if (std::strcmp(procedures.entries[id].name, name) == 0) return static_cast<procedure_id>(id);
  }
  return 0;
}

bool is_own_name(const char* name) noexcept {
  for (const char* own :
       {"leveret.bulk", "leveret.columns.", "leveret.join", "leveret.parallel_for"})
    if (std::strncmp(name, own, std::strlen(own)) == 0) return true;
  return false;
}

status check(const procedure_info& info) noexcept {
  if (info.name == nullptr || info.name[0] == 0 || info.run == nullptr) return status::bad_argument;
  if (std::strlen(info.name) > procedure_name_bytes_max) return status::too_big;
  if (info.kind_count > argument_count_max) return status::bad_argument_count;
  if (info.kind_count != 0 && info.kinds == nullptr) return status::bad_argument;
  for (unsigned i = 0; i < info.kind_count; ++i) {
    if (info.kinds[i] < kind::value || info.kinds[i] > kind::range) return status::bad_argument;
  }
  return status::ok;
}

void fill(procedure_entry& e, const procedure_info& info) noexcept {
  std::strcpy(e.name, info.name);
  e.addresses = e.memory = e.outputs = 0;
  for (unsigned i = 0; i < info.kind_count; ++i) {
    argument a;
    a.what = e.kinds[i] = info.kinds[i];
    if (has_address(a)) e.addresses |= 1u << i;
    if (is_memory(a.what)) e.memory |= 1u << i;
    if (is_output(a)) e.outputs |= 1u << i;
  }
  e.info = info;
  e.info.name = e.name;
  e.info.kinds = e.kinds;
  e.diceable = info.dice != nullptr;
  e.is_own = is_own_name(info.name);
  plan_plain(e);
}

status add(const procedure_info& info, procedure_id* id) noexcept {
  if (const status code = check(info); code != status::ok) return code;
  const spin_guard<> held(registration);
  const std::uint32_t count = procedures.count.load(memory_order_relaxed);
  status code = status::ok;
  procedure_id place = find(count, info.name);
  if (place != 0) {
    code = status::exists;
  } else if (count > procedure_count_max) {
    code = status::too_big;
  } else {
    place = static_cast<procedure_id>(count);
    fill(procedures.entries[place], info);
    // Pairs with find_procedure() and lookup(): publishes the entry.
    procedures.count.store(count + 1, memory_order_release);
  }
  if (id != nullptr) *id = place;
  return code;
}

procedure_id id_or_throw(const procedure_info& info, status code, procedure_id id) {
  if (code == status::exists && procedure_at(id).info.run == info.run &&
      procedure_at(id).info.context == info.context) {
    return id;  // the same procedure from another translation unit
  }
  if (code == status::ok) return id;
  char message[256];
  const char* name = info.name == nullptr ? "" : info.name;
  std::snprintf(message, sizeof message, "define('%.63s'): %s", name, refusal_text(info, code));
  throw error(code, -1, message);
}

}  // namespace

status register_procedure(const procedure_info& info, procedure_id* id) noexcept {
  if (info.name != nullptr && is_own_name(info.name)) return status::bad_argument;
  return add(info, id);
}

const char* refusal_text(const procedure_info& info, status code) noexcept {
  switch (code) {
    case status::exists:
      return "the name is taken by another procedure; choose a name of its own";
    case status::bad_argument_count:
      return "more than 18 parameters; pass several values as one struct";
    case status::too_big:
      if (std::strlen(info.name) > procedure_name_bytes_max)
        return "the name has more than 63 bytes; choose a shorter one";
      return "the table is full: a process has at most 1023 procedures and none is ever removed; "
             "define each once, and pass what differs as an argument";
    default:
      if (info.name != nullptr && is_own_name(info.name))
        return "names that begin like this are those of Leveret's own procedures; choose another";
      if (info.run == nullptr)
        return "the function is null; define one that exists, or load its library first";
      return "a procedure needs a name of 1 to 63 bytes, a body, and parameters of known kinds";
  }
}

procedure_id lookup(const char* name) noexcept {
  // Pairs with register_procedure().
  return name == nullptr ? 0 : find(procedures.count.load(memory_order_acquire), name);
}

const char* procedure_name(procedure_id id) noexcept {
  const procedure_entry* e = find_procedure(id);
  return e == nullptr ? "?" : e->name;
}

procedure_id detail::register_or_throw(const procedure_info& info) {
  procedure_id id = 0;
  const status code = register_procedure(info, &id);
  return id_or_throw(info, code, id);
}

procedure_id register_own(const procedure_info& info) {
  LEV_ASSERT(info.name != nullptr && is_own_name(info.name));
  procedure_id id = 0;
  const status code = add(info, &id);
  return id_or_throw(info, code, id);
}

}  // namespace lev
