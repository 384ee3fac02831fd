// Parts of formulas that several kernels share: the norm of a row, heads that are turned, skips with a gate.
#pragma once

#include <cmath>

#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test {

inline constexpr double kEps = 1.1920928955078125e-7;  // 2^-23

// Of z(0), z(1), ...
template <typename Z>
auto root_mean_square(const Z& z, std::int64_t width, double eps) {
  auto squares = z(0) * z(0);
  for (std::int64_t j = 1; j < width; ++j) squares += z(j) * z(j);
  using std::sqrt;
  return sqrt(squares / static_cast<double>(width) + eps);
}

// scale * norm(x[row]) -> y[row]
template <typename S>
void norm_row(Values<S>& x, Values<S>& y, std::int64_t row, double scale, double eps) {
  const S root = root_mean_square([&](std::int64_t j) { return x(row, j); }, x.dim(1), eps);
  for (std::int64_t j = 0; j < x.dim(1); ++j) y(row, j) = S(scale) * x(row, j) / root;
}

inline std::map<std::string, double> rotary_attributes(std::int64_t rope_dims, std::int64_t row_length,
                                                       double norm) {
  return {{"rope_dims", static_cast<double>(rope_dims)},
          {"row_length", static_cast<double>(row_length)},
          {"norm", norm},
          {"eps", kEps}};
}

// gain * z(0), z(1), ... -> out[t, head], normed where the call says so, and turned by the angles of its position.
template <typename Call, typename S, typename Z>
void turn_head(Call& call, const Z& z, S gain, Values<S>& out, std::int64_t t, std::int64_t head) {
  const std::int64_t width = out.dim(2), half = static_cast<std::int64_t>(call.attribute("rope_dims")) / 2;
  const std::int64_t position = t % static_cast<std::int64_t>(call.attribute("row_length"));
  const S root = call.attribute("norm") != 0 ? root_mean_square(z, width, call.attribute("eps")) : S(1.0);
  for (std::int64_t j = 0; j < width; ++j) {
    S turned = z(j);
    if (j < half) {
      turned = z(j) * call.in("cos")(position, j) + z(j + half) * call.in("sin")(position, j);
    } else if (j < 2 * half) {
      turned = z(j) * call.in("cos")(position, j - half) - z(j - half) * call.in("sin")(position, j - half);
    }
    out(t, head, j) = gain * turned / root;
  }
}

// Column j of a stream with a skip: added, or mixed by the call's gate.
template <typename Call, typename S>
S with_skip(Call& call, S stream, S skip, std::int64_t j) {
  using std::exp;
  if (!call.has("gate")) return stream + skip;
  return skip + S(1.0) / (S(1.0) + exp(-call.in("gate")[j])) * (stream - skip);
}

}  // namespace mulligan::kernel_test
