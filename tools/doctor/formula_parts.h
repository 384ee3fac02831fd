// What the formulas of kernels (kernels/NAME/formula.h, all of them read by formulas.cpp in this namespace) share. In a formula f has
// the names of the arguments.
#pragma once

#include <algorithm>
#include <cmath>

#include "tools/doctor/formulas.h"

namespace mulligan::doctor {

std::map<std::string_view, Formula>& known_formulas();

// Of one or several kernels (signature.h) that compute the same.
template <typename... Kernels>
struct Formulas {
  template <typename Body>
  explicit Formulas(Body) {
    ((known_formulas()[Kernels::name] = [](const ReferenceCall& c) { return Body{}(c, Kernels{}); }), ...);
  }
};

using Numbers = std::vector<double>;

inline std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}
inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// scale * x / sqrt(mean(x^2) + eps) of each row.
inline Numbers normed(const Numbers& x, std::int64_t width, double scale, double eps) {
  Numbers y(x.size());
  for (std::size_t row = 0; row < x.size(); row += index(width)) {
    double squares = 0;
    for (std::size_t i = 0; i < index(width); ++i) squares += x[row + i] * x[row + i];
    const double factor = scale / std::sqrt(squares / static_cast<double>(width) + eps);
    for (std::size_t i = 0; i < index(width); ++i) y[row + i] = factor * x[row + i];
  }
  return y;
}
inline Numbers normed(const ReferenceCall& c, const Numbers& x, std::int64_t width) {
  return normed(x, width, c.attribute("scale"), c.attribute("eps"));
}

// mix0 x + mix1 x0
inline Numbers mixed(const Numbers& x, const Numbers& x0, const Numbers& mix) {
  const std::size_t width = mix.size() / 2;
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = mix[i % width] * x[i] + mix[width + i % width] * x0[i];
  return y;
}
// x + s a; without s x + a
template <typename F>
Numbers scaled_sum(const ReferenceCall& c, F f) {
  Numbers y = c[f.x];
  const Numbers a = c[f.a], s = c.has(f.s) ? c[f.s] : Numbers(1, 1.0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += s[i % s.size()] * a[i];
  return y;
}
// sigmoid(gate) x + (1 - sigmoid(gate)) weight skip; without gate x + weight skip, without weight or
// skip no such term.
inline Numbers blended(const Numbers& x, const Numbers& skip, const Numbers& weight, const Numbers& gate) {
  Numbers y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = skip.empty() || weight.empty() ? 0 : weight[i % weight.size()] * skip[i];
    const double g = gate.empty() ? 1 : sigmoid(gate[i % gate.size()]);
    y[i] = gate.empty() ? x[i] + s : g * x[i] + (1 - g) * s;
  }
  return y;
}
inline Numbers optional(const ReferenceCall& c, std::size_t argument) {
  return c.has(argument) ? c[argument] : Numbers();
}

}  // namespace mulligan::doctor
