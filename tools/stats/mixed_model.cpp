#include "tools/stats/mixed_model.h"

#include <algorithm>
#include <array>
#include <boost/math/tools/minima.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "tools/stats/t_tests.h"

namespace mulligan::stats {
namespace {

using Matrix = std::vector<std::vector<double>>;

// Inverse and log determinant of a symmetric positive definite matrix by Gauss and Jordan with pivots on the
// diagonal; absent where it is singular.
struct Inverse {
  Matrix matrix;
  double log_determinant = 0;
};
std::optional<Inverse> inverse_of(Matrix a) {
  const std::size_t n = a.size();
  Inverse result{Matrix(n, std::vector<double>(n, 0.0)), 0};
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    result.matrix[i][i] = 1;
    largest = std::max(largest, a[i][i]);
  }
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = a[k][k];
    if (!(pivot > 1e-12 * largest)) return std::nullopt;
    result.log_determinant += std::log(pivot);
    for (std::size_t j = 0; j < n; ++j) {
      a[k][j] /= pivot;
      result.matrix[k][j] /= pivot;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i][k];
      for (std::size_t j = 0; j < n; ++j) {
        a[i][j] -= factor * a[k][j];
        result.matrix[i][j] -= factor * result.matrix[k][j];
      }
    }
  }
  return result;
}

// What is known of one group, with a column for y behind those of x: its size, sums and products.
struct GroupSums {
  double n = 0;
  std::vector<double> sum;
  Matrix products;
};

// Generalised least squares for given variances.
struct Solution {
  std::vector<double> beta;
  Matrix covariance;            // of beta, for the variances as they are
  double residual = 0;          // r' V^-1 r
  double log_v = 0, log_x = 0;  // log |V|, log |X' V^-1 X|
};

class Fit {
 public:
  explicit Fit(const MixedData& data) : n_(data.y.size()), p_(data.x.empty() ? 0 : data.x.front().size()) {
    if (n_ == 0 || data.x.size() != n_ || data.group.size() != n_ || n_ <= p_) {
      throw std::invalid_argument(
          "a mixed model needs a row and a group for each value, and fewer columns than values");
    }
    groups_.resize(*std::ranges::max_element(data.group) + 1,
                   {0, std::vector<double>(p_ + 1), Matrix(p_ + 1, std::vector<double>(p_ + 1))});
    for (std::size_t i = 0; i < n_; ++i) {
      if (data.x[i].size() != p_) throw std::invalid_argument("a mixed model's rows have one length");
      std::vector<double> row = data.x[i];
      row.push_back(data.y[i]);
      GroupSums& group = groups_[data.group[i]];
      group.n += 1;
      for (std::size_t a = 0; a <= p_; ++a) {
        group.sum[a] += row[a];
        for (std::size_t b = 0; b <= p_; ++b) group.products[a][b] += row[a] * row[b];
      }
    }
  }

  Solution solve(double group_variance, double noise_variance) const {
    Matrix w(p_ + 1, std::vector<double>(p_ + 1));  // [X y]' V^-1 [X y]
    Solution found;
    for (const GroupSums& group : groups_) {
      if (group.n == 0) continue;
      const double whole = noise_variance + group.n * group_variance;
      found.log_v += (group.n - 1) * std::log(noise_variance) + std::log(whole);
      for (std::size_t a = 0; a <= p_; ++a) {
        for (std::size_t b = 0; b <= p_; ++b) {
          w[a][b] +=
              (group.products[a][b] - group_variance / whole * group.sum[a] * group.sum[b]) / noise_variance;
        }
      }
    }
    Matrix xx(p_, std::vector<double>(p_));
    for (std::size_t a = 0; a < p_; ++a) {
      for (std::size_t b = 0; b < p_; ++b) xx[a][b] = w[a][b];
    }
    const std::optional<Inverse> inverse = inverse_of(xx);
    if (!inverse) throw std::invalid_argument("a mixed model's columns are linearly dependent");
    found.covariance = inverse->matrix;
    found.log_x = inverse->log_determinant;
    found.residual = w[p_][p_];
    for (std::size_t a = 0; a < p_; ++a) {
      double beta = 0;
      for (std::size_t b = 0; b < p_; ++b) beta += inverse->matrix[a][b] * w[b][p_];
      found.beta.push_back(beta);
      found.residual -= beta * w[a][p_];
    }
    found.residual = std::max(found.residual, 0.0);
    return found;
  }

  // -2 times the restricted log likelihood, without constants.
  double deviance(double group_variance, double noise_variance) const {
    const Solution found = solve(group_variance, noise_variance);
    return found.log_v + found.log_x + found.residual;
  }

  // The derivative of the profile below by the share, of variances that are the share and the rest of 1. With
  // w = 1 - share + n share of a group: V^-1 V' V^-1 = J / w^2 - (I - (2 share w - share^2 n) / w^2 J) / (1 - share)^2.
  double slope(double share) const {
    const double noise = 1 - share;
    const Solution at = solve(share, noise);
    std::vector<double> residual_of(p_ + 1, 1);
    std::ranges::transform(at.beta, residual_of.begin(), std::negate<>());
    double log_v = 0, log_x = 0, residual = 0;
    for (const GroupSums& group : groups_) {
      if (group.n == 0) continue;
      const double whole = noise + group.n * share;
      const double shared = (2 * share * whole - share * share * group.n) / (whole * whole);
      log_v += group.n / whole - (group.n - share * group.n / whole) / noise;
      for (std::size_t a = 0; a <= p_; ++a) {
        for (std::size_t b = 0; b <= p_; ++b) {
          const double sums = group.sum[a] * group.sum[b];
          const double m = sums / (whole * whole) - (group.products[a][b] - shared * sums) / (noise * noise);
          residual -= residual_of[a] * residual_of[b] * m;
          if (a < p_ && b < p_) log_x -= at.covariance[a][b] * m;
        }
      }
    }
    return free_values() * residual / at.residual + log_v + log_x;
  }

  double free_values() const { return static_cast<double>(n_ - p_); }
  std::size_t columns() const { return p_; }

 private:
  std::size_t n_, p_;
  std::vector<GroupSums> groups_;
};

// Satterthwaite: 2 v^2 / (g' C g), where v is the coefficient's variance as a function of both variances, g
// its gradient and C the covariance of the estimated variances (twice the inverse of the deviance's second
// derivatives). Differences are central, with steps relative to the sum of the variances.
class Satterthwaite {
 public:
  Satterthwaite(const Fit& fit, double group, double noise) : fit_(fit), at_{group, noise} {
    step_ = 1e-3 * noise;
    const auto deviance = [&](double a, double b) {
      return fit.deviance(at_[0] + a * step_, at_[1] + b * step_);
    };
    const double centre = deviance(0, 0);
    const double aa = (deviance(1, 0) - 2 * centre + deviance(-1, 0)) / (step_ * step_);
    const double bb = (deviance(0, 1) - 2 * centre + deviance(0, -1)) / (step_ * step_);
    const double ab =
        (deviance(1, 1) - deviance(1, -1) - deviance(-1, 1) + deviance(-1, -1)) / (4 * step_ * step_);
    covariance_ = inverse_of({{aa / 2, ab / 2}, {ab / 2, bb / 2}});
  }

  // Values less columns where the second derivatives say nothing, as for intercepts without variance.
  double degrees(std::size_t column) const {
    if (!covariance_) return fit_.free_values();
    const auto variance = [&](double a, double b) {
      return fit_.solve(at_[0] + a * step_, at_[1] + b * step_).covariance[column][column];
    };
    const std::array<double, 2> gradient = {(variance(1, 0) - variance(-1, 0)) / (2 * step_),
                                            (variance(0, 1) - variance(0, -1)) / (2 * step_)};
    double spread = 0;
    for (std::size_t a = 0; a < 2; ++a) {
      for (std::size_t b = 0; b < 2; ++b) spread += gradient[a] * covariance_->matrix[a][b] * gradient[b];
    }
    const double centre = variance(0, 0);
    return spread > 0 ? 2 * centre * centre / spread : fit_.free_values();
  }

 private:
  const Fit& fit_;
  std::array<double, 2> at_;
  double step_ = 0;
  std::optional<Inverse> covariance_;
};

}  // namespace

MixedModel fit_mixed_model(const MixedData& data) {
  const Fit fit(data);
  // With the share fixed, the best scale of both variances is r' V^-1 r / (n - p).
  const auto scale = [&](double share) { return fit.solve(share, 1 - share).residual / fit.free_values(); };
  if (!(scale(0) > 0))
    throw std::invalid_argument("a mixed model needs values that its columns do not explain");
  const auto profile = [&](double share) {
    const Solution found = fit.solve(share, 1 - share);
    return fit.free_values() * std::log(found.residual / fit.free_values()) + found.log_v + found.log_x;
  };
  constexpr double most = 1 - 1e-9;
  constexpr int bits = 40;
  double share = boost::math::tools::brent_find_minima(profile, 0.0, most, bits).first;
  if (profile(0) <= profile(share)) share = 0;
  // Values find a minimum to the root of the arithmetic's precision, the slope finds it to nearly all of it.
  const double low = 0.999 * share, high = std::min(most, 1.001 * share);
  const auto slope = [&](double at) { return fit.slope(at); };
  if (share > 0 && slope(low) < 0 && slope(high) > 0) {
    std::uintmax_t steps = 100;
    share = boost::math::tools::toms748_solve(slope, low, high, boost::math::tools::eps_tolerance<double>(50),
                                              steps)
                .first;
  }

  MixedModel model;
  const double sigma = scale(share);
  model.group_variance = share * sigma;
  model.noise_variance = (1 - share) * sigma;
  const Solution best = fit.solve(model.group_variance, model.noise_variance);
  model.log_likelihood = -0.5 * (best.log_v + best.log_x + best.residual);
  // At the border the deviance has no second derivative to both sides: there the noise alone is estimated.
  const Satterthwaite degrees(fit, model.group_variance, model.noise_variance);
  for (std::size_t column = 0; column < fit.columns(); ++column) {
    MixedCoefficient c;
    c.estimate = best.beta[column];
    c.standard_error = std::sqrt(best.covariance[column][column]);
    c.degrees = share > 0 ? degrees.degrees(column) : fit.free_values();
    c.t = c.estimate / c.standard_error;
    c.two_sided = 2 * t_cdf(-std::abs(c.t), c.degrees);
    model.coefficients.push_back(c);
  }
  return model;
}

Design treatment_design(const std::vector<std::string>& factors,
                        const std::vector<std::vector<std::string>>& levels, bool interactions) {
  struct Column {
    std::size_t factor;
    std::string level;
  };
  std::vector<Column> columns;
  for (std::size_t f = 0; f < factors.size(); ++f) {
    std::vector<std::string> seen;
    for (const std::vector<std::string>& value : levels) {
      if (std::ranges::find(seen, value[f]) == seen.end()) seen.push_back(value[f]);
    }
    for (std::size_t level = 1; level < seen.size(); ++level) columns.push_back({f, seen[level]});
  }
  Design design;
  design.names = {"intercept"};
  const auto name = [&](const Column& c) { return factors[c.factor] + "=" + c.level; };
  for (const Column& column : columns) design.names.push_back(name(column));
  for (const std::vector<std::string>& value : levels) {
    design.x.push_back({1});
    for (const Column& c : columns) design.x.back().push_back(value[c.factor] == c.level ? 1 : 0);
  }
  if (!interactions) return design;
  for (std::size_t a = 0; a < columns.size(); ++a) {
    for (std::size_t b = a + 1; b < columns.size(); ++b) {
      if (columns[a].factor == columns[b].factor) continue;
      design.names.push_back(name(columns[a]) + " x " + name(columns[b]));
      for (std::vector<double>& row : design.x) row.push_back(row[a + 1] * row[b + 1]);
    }
  }
  return design;
}

}  // namespace mulligan::stats
