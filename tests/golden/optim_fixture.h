// What the golden tests of the fixture "optim" share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "framework/core/tensor_type.h"
#include "tests/golden/golden_fixture.h"

namespace mulligan {

inline TensorType type_of(const std::vector<std::int64_t>& shape, DType dtype = MLG_F32) {
  TensorType type(dtype, {});
  type.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), type.dims.begin());
  return type;
}

// Row `index` along the first dimension of a stored tensor.
template <typename T>
std::vector<T> row(const std::vector<T>& values, std::int64_t index, std::int64_t count) {
  const auto length = static_cast<std::int64_t>(values.size()) / count;
  return {values.begin() + index * length, values.begin() + (index + 1) * length};
}

inline void expect_near(const std::vector<float>& actual, const std::vector<double>& expected,
                        double tolerance, double relative = 0.0) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], std::max(tolerance, relative * std::abs(expected[i])))
        << "element " << i;
  }
}

// The number after `what` in "lr, weight decay 0.05, momentum 0.95"; 0 where it says nothing.
inline double stated(const std::string& text, const std::string& what) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(what + R"( ?([0-9.]*[0-9]))")) ? std::stod(match[1]) : 0.0;
}

// What follows `prefix` in the names of the fixture's tensors, up to the next point.
inline std::set<std::string> parts_after(const GoldenFixture& fixture, const std::string& prefix) {
  std::set<std::string> parts;
  for (const std::string& name : fixture.names()) {
    if (name.rfind(prefix, 0) == 0)
      parts.insert(name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size()));
  }
  return parts;
}

inline const nlohmann::json& settings(const GoldenFixture& fixture, const std::string& name) {
  return fixture.manifest().at("settings_and_checks").at(name);
}

}  // namespace mulligan
