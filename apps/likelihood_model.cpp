// Substitution models: rate matrix, its eigenvalues, rates of the categories.
//
// A time-reversible rate matrix Q has pi_i Q_ij = pi_j Q_ji, so S = D Q D^-1, where D is diagonal
// and has the roots of pi, is symmetric. By Jacobi's rotations S = U L U^T; so exp(Q t) = D^-1 U
// exp(L t) U^T D.
#include "likelihood_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leveret_apps {
namespace {

// The share of a gamma distribution (shape `a`, scale 1) below x. Below a + 1 by the series
// x^a e^-x sum of x^n / (a (a+1) ... (a+n)), above by the continued fraction of the rest
// (Abramowitz and Stegun 6.5.29 and 6.5.31).
double gamma_share(double a, double x) {
  if (x <= 0) return 0;
  const double front = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = a + 1; term > sum * 1e-17; ++n) sum += term *= x / n;
    return front * sum;
  }
  double fraction = 0;
  for (double n = 1000; n > 0; --n) fraction = (n - a) / (1 + n / (x + fraction));
  return 1 - front / (x + fraction);
}

// Where that share is reached, by halving.
double gamma_quantile(double a, double share) {
  double low = 0;
  double high = a + 1;
  while (gamma_share(a, high) < share) high *= 2;
  for (int i = 0; i < 2000 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (gamma_share(a, middle) < share ? low : high) = middle;
  }
  return high;
}

// Turns rows and columns p and q of the symmetric `s` so that s[p][q] becomes 0; `u` gathers what
// was done.
void rotate(double s[4][4], double u[4][4], int p, int q) {
  if (s[p][q] == 0) return;
  const double theta = (s[q][q] - s[p][p]) / (2 * s[p][q]);
  const double t = (theta < 0 ? -1.0 : 1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1);
  const double sine = t * c;
  for (int k = 0; k < 4; ++k) {
    const double a = s[k][p];
    const double b = s[k][q];
    s[k][p] = c * a - sine * b;
    s[k][q] = sine * a + c * b;
  }
  for (int k = 0; k < 4; ++k) {
    const double a = s[p][k];
    const double b = s[q][k];
    s[p][k] = c * a - sine * b;
    s[q][k] = sine * a + c * b;
  }
  for (int k = 0; k < 4; ++k) {
    const double a = u[k][p];
    const double b = u[k][q];
    u[k][p] = c * a - sine * b;
    u[k][q] = sine * a + c * b;
  }
}

}  // namespace

substitution_model jukes_cantor(double alpha) {
  substitution_model model;
  std::fill(model.exchange, model.exchange + 6, 1.0);
  std::fill(model.frequency, model.frequency + 4, 0.25);
  model.alpha = alpha;
  return model;
}

// The mean of the k-th quarter of a distribution with mean 1: the share below its ends of a
// gamma distribution with shape alpha + 1, times the number of categories (Yang 1994, equation 10).
void gamma_rates(double alpha, double rates[rate_categories]) {
  double below = 0;
  for (unsigned k = 0; k < rate_categories; ++k) {
    double above = 1;
    if (k + 1 < rate_categories) {
      const double end = gamma_quantile(alpha, (k + 1.0) / rate_categories);
      above = gamma_share(alpha + 1, end);
    }
    rates[k] = (above - below) * rate_categories;
    below = above;
  }
}

void rate_matrix(const substitution_model& model, double q[4][4]) {
  double mean = 0;
  const double* exchange = model.exchange;
  for (int i = 0; i < 4; ++i) {
    for (int j = i + 1; j < 4; ++j, ++exchange) {
      q[i][j] = *exchange * model.frequency[j];
      q[j][i] = *exchange * model.frequency[i];
      mean += 2 * *exchange * model.frequency[i] * model.frequency[j];
    }
  }
  for (int i = 0; i < 4; ++i) {
    q[i][i] = 0;
    for (int j = 0; j < 4; ++j) q[i][j] /= mean;
    for (int j = 0; j < 4; ++j) {
      if (j != i) q[i][i] -= q[i][j];
    }
  }
}

transitions::transitions(const substitution_model& model) {
  gamma_rates(model.alpha, rates_);
  double s[4][4];
  double u[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  double root[4];
  rate_matrix(model, s);
  for (int i = 0; i < 4; ++i) root[i] = std::sqrt(model.frequency[i]);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) s[i][j] *= root[i] / root[j];
  }
  // Rotations converge quadratically: 4 x 4 is diagonal to the last bit after 5 or 6 rounds.
  for (int round = 0; round < 20; ++round) {
    for (int p = 0; p < 4; ++p) {
      for (int q = p + 1; q < 4; ++q) rotate(s, u, p, q);
    }
  }
  for (int k = 0; k < 4; ++k) {
    values_[k] = std::min(0.0, s[k][k]);
    for (int i = 0; i < 4; ++i) {
      left_[i][k] = u[i][k] / root[i];
      right_[k][i] = u[i][k] * root[i];
    }
  }
}

branch transitions::along(double length) const {
  branch b;
  for (unsigned c = 0; c < rate_categories; ++c) {
    double decay[4];
    for (int k = 0; k < 4; ++k) decay[k] = std::exp(values_[k] * rates_[c] * length);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        double sum = 0;
        for (int k = 0; k < 4; ++k) sum += left_[i][k] * decay[k] * right_[k][j];
        // Rounding leaves less than nothing of a probability that is 0 on a branch without length.
        b.of[c][j][i] = std::max(0.0, sum);
      }
    }
  }
  return b;
}

}  // namespace leveret_apps
