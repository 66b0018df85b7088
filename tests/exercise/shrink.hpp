// Makes a failing program smaller: steps, tasks, options and settings are taken away as long as it
// still fails.
#pragma once

#include "exercise/drive.hpp"

namespace lev::exercise {

// Shrinks `f.shrunk`, and says how often what is left fails.
void shrink(finding& f, const plan& p);

}  // namespace lev::exercise
