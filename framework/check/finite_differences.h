// Gradients from values alone, to compare a plugin's gradients with.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mulligan {

// A number of `values`, which the function may be asked for at changed values again and again.
using ScalarFunction = std::function<double(const std::vector<float>& values)>;

// Compares `gradient` with central differences of fourth order of `function` at `values`, element by element.
// Returns a problem that names `what` and the worst element, or empty. Tolerance: 1 % of the largest of all
// gradients, for the differences of f32 results carry that much noise at small ones.
std::string compare_with_differences(const std::string& what, const std::vector<float>& values,
                                     const std::vector<float>& gradient, const ScalarFunction& function);

// Sum of weight * value, in double.
double weighed_sum(const std::vector<float>& weights, const std::vector<float>& values);

// Repeatable numbers, about normal, times `scale`.
std::vector<float> sample(std::size_t count, unsigned seed, float scale = 1.0f);

}  // namespace mulligan
