# The whole pipeline on the checker's atomics (pipeline_model.cpp): the environment is exchanged, and some bounds are smaller, so
# that a schedule is short. Then wrong steps, as in faults.cmake.

plant(sync/env.hpp [[#include "sync/fence.hpp"]] [[#include "relacy_env.hpp"
#include "sync/fence.hpp"]])
plant(sync/env.hpp [[struct real_env {]] [[using real_env = model::env;
struct hardware_env {]])
plant(task/slot.hpp [[static_assert(sizeof(slot) == line_bytes);]] [[]])
plant(task/procedure_table.hpp [[atomic<std::uint32_t> count{1};]] [[std::atomic<std::uint32_t> count{1};]])
plant(worker/participant.hpp [[constexpr std::uint32_t inbox_capacity = 256;]] [[constexpr std::uint32_t inbox_capacity = 4;]])
plant(flow/mutex_table.hpp [[entry entries_[mutex_count_max];]] [[entry entries_[2];]])
plant(worker/worker.cpp [[constexpr std::uint32_t looks_per_turn = 8;]] [[constexpr std::uint32_t looks_per_turn = 1;]])
plant(worker/worker.cpp [[constexpr std::uint32_t looks_per_clock = 4;]] [[constexpr std::uint32_t looks_per_clock = 1;]])
