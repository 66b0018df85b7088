// Jack Rabbit's three applications (S0, chapter 5) on its pool.
#pragma once

#include "jack_rabbit/pool.hpp"

namespace leveret_papers {

// LU by columns: for each column a few tasks for its multipliers, a barrier, a task for each column
// to the right of it, a barrier. Four of the outer steps stand for all unless the world is full.
struct rabbit_lu {
  unsigned size = 1024;
  unsigned spes = 6;
  bool is_double_buffered = false;
};
double lu_seconds(world& w, const rabbit_lu& what);
// All of it with data: the largest difference from a serial LU.
double lu_difference(world& w, const rabbit_lu& what);

// Barnes-Hut: sets of 512 bodies rotate over as many pieces of the tree, a barrier after each
// turn; then the bodies are moved. Some of the turns stand for all.
struct rabbit_bodies {
  unsigned bodies = 10000;
  unsigned steps = 100;
  unsigned spes = 6;
  bool is_double_buffered = false;
  const char* cost = "";  // the constant of a task's mean time
};
double bodies_seconds(world& w, const rabbit_bodies& what);
unsigned sets_of(unsigned bodies);

// 1000 frames of a Mandelbrot set of 640 x 480, 1000 iterations at most.
double frames_seconds(world& w, unsigned tasks, bool is_diced);
// How many tasks there are when so many were asked for: each has whole lines.
unsigned tasks_of_lines(unsigned tasks);

}  // namespace leveret_papers
