// A linear model with a random intercept, y = X beta + u(seed) + noise, by restricted maximum likelihood.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mulligan::stats {

struct MixedData {
  std::vector<double> y;
  std::vector<std::vector<double>> x;  // a row of regressors for each y, as many in every row
  std::vector<std::size_t> group;      // of each y, from 0: the seed that it shares its intercept with
};

struct MixedCoefficient {
  double estimate = 0, standard_error = 0;
  double degrees = 0;  // Satterthwaite's
  double t = 0, two_sided = 1;
};

struct MixedModel {
  std::vector<MixedCoefficient> coefficients;  // by column of x
  double group_variance = 0;                   // of the intercepts
  double noise_variance = 0;
  double log_likelihood = 0;  // restricted, without constants
};

// Fits by a one-dimensional search over the intercepts' share of the variance: with that share the covariance
// of a group of n values is (1 - share) I + share J, whose inverse and determinant are known. For a balanced
// design it is the analysis of variance with repeated measures. Throws std::invalid_argument where rows do
// not fit together, the columns of x are linearly dependent, or there are no more values than columns.
MixedModel fit_mixed_model(const MixedData& data);

// Treatment coding of factors: an intercept, a column for every level but the first of each factor, and with
// `interactions` the products of the columns of each two factors. levels[i][f] is the level of factor f of
// value i; a factor's first level is that of the first value.
struct Design {
  std::vector<std::string>
      names;  // of the columns: "intercept", "FACTOR=LEVEL", "FACTOR=LEVEL x FACTOR=LEVEL"
  std::vector<std::vector<double>> x;  // a row for each value
};
Design treatment_design(const std::vector<std::string>& factors,
                        const std::vector<std::vector<std::string>>& levels, bool interactions);

}  // namespace mulligan::stats
