// Outcomes of checks of a plugin, one line each.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {

struct CheckLine {
  std::string what;     // "gradients equal finite differences"
  std::string problem;  // empty: passed
};

class CheckList {
 public:
  // Runs `body`, which returns a problem or an empty string; an exception is a problem.
  void add(const std::string& what, const std::function<std::string()>& body) {
    CheckLine line{what, {}};
    try {
      line.problem = body();
    } catch (const std::exception& error) {
      line.problem = error.what();
    }
    lines_.push_back(std::move(line));
  }
  const std::vector<CheckLine>& lines() const { return lines_; }

 private:
  std::vector<CheckLine> lines_;
};

// The first element in which two runs differ, as a problem, or empty. Bits are compared.
inline std::string first_difference(const char* what, const std::vector<float>& a,
                                    const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return fmt::format("element {} of {} is {} once and {} another time", i, what, a[i], b[i]);
  }
  return {};
}
// Where two results are further apart than `tolerance` times the largest magnitude of `a`.
inline std::string first_distance(const char* what, const std::vector<float>& a, const std::vector<float>& b,
                                  double tolerance) {
  float largest = 0;
  for (const float value : a) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= tolerance * largest))
      return fmt::format("element {} of {} is {} once and {} another time", i, what, a[i], b[i]);
  }
  return {};
}

}  // namespace mulligan
