// The place of what Leveret does while a program loads, before constructors of the program's own.
#pragma once

namespace lev {

// Constructors with a number run first, in its order; smaller ones are the compiler's. In a program
// that is linked with the archive, those without a number run before Leveret's that have none.
constexpr int first_constructor = 101;

}  // namespace lev
