// What the papers' algorithms are asked to do, done by Leveret's pipeline; see pipeline.hpp.
#pragma once

#include "cellmt/stream.hpp"
#include "gcell/jobs.hpp"
#include "jack_rabbit/pool.hpp"
#include "tpc/calls.hpp"

namespace leveret_papers {

// The same batches; double buffering is a depth of two. Tasks of pieces are diced by Leveret.
rabbit_outcome run_rabbit_by_leveret(world& w, const rabbit_pool& what, const rabbit_batches& make);

// The same tasks in the same steps. The queue's slots are the depth; all else of a call is not
// Leveret's.
tpc_outcome run_tpc_by_leveret(world& w, const tpc_calls& what);

// As many jobs in flight, by a client that waits for any.
double us_of_a_job_by_leveret(world& w, const gcell_jobs& what);

// Tasks that get and put the blocks themselves; threads are tasks of one worker.
double bytes_per_second_by_leveret(world& w, const stream& what);

}  // namespace leveret_papers
