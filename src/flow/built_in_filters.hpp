// What a pass knows of the filters that come with Leveret: they permute and do not throw, and a
// line that one of them has put in order stays in order while tasks leave it.
#pragma once

#include <leveret/filter.hpp>

namespace lev::filters {

bool is_built_in(const filter& f) noexcept;

// put_in_order() is what the filter does, to a line whose first `ordered` tasks it has put in order
// before. Precondition: is_built_in(f).
void put_in_order(const filter& f, waiting_task* tasks, std::size_t ordered,
                  std::size_t count) noexcept;

}  // namespace lev::filters
