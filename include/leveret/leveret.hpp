// The whole C++ API. Headers that need more of the standard library stay apart:
// <leveret/coroutine.hpp>, <leveret/interleave_flat.hpp>.
#ifndef LEVERET_LEVERET_HPP
#define LEVERET_LEVERET_HPP

#include <leveret/args.hpp>
#include <leveret/config.hpp>
#include <leveret/filter.hpp>
#include <leveret/interleave.hpp>
#include <leveret/ordered.hpp>
#include <leveret/procedure.hpp>
#include <leveret/runtime.hpp>
#include <leveret/shared.hpp>
#include <leveret/status.hpp>
#include <leveret/task.hpp>
#include <leveret/this_task.hpp>
#include <leveret/ticket.hpp>
#include <leveret/version.hpp>
#include <leveret/worker_program.hpp>

#endif
