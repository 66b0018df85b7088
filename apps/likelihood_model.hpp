// Transition probabilities of a substitution model, by its eigenvalues.
#pragma once

#include "leveret_apps/likelihood.hpp"

namespace leveret_apps {

// Rates of the categories, for a mean rate of 1: the means of the quarters of a gamma distribution.
void gamma_rates(double alpha, double rates[rate_categories]);

// Element (i, j), for i and j different: how fast i becomes j, for a mean rate of 1; rows sum to 0.
void rate_matrix(const substitution_model& model, double q[4][4]);

// Probabilities that a state becomes another along a branch, for each category: of[c][j][i] is that
// from i to j. The state at the node above comes last, as the kernels' inner loop goes through it.
struct branch {
  double of[rate_categories][4][4];
};

class transitions {
 public:
  explicit transitions(const substitution_model& model);
  branch along(double length) const;

 private:
  double rates_[rate_categories];
  double values_[4];   // eigenvalues of the rate matrix, none above 0
  double left_[4][4];  // left_[i][k] * exp(values_[k] * t) * right_[k][j] is what i to j gets
  double right_[4][4];
};

}  // namespace leveret_apps
