// Checks of a model's weights as numbers: D05 to D07.
#pragma once

#include <vector>

#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {

// drawn: the initial weights of a run; trained: anything else.
enum class WeightOrigins { drawn, trained };

// Of the elements that are not zero (of large tensors some at even distances): the standard deviation of
// log2|x| and the median of |x|. About 1.6 for any normal distribution whatever its scale; 0.2 for bf16
// numbers that were read as f16, 12.7 the other way round.
struct MagnitudeSpread {
  std::size_t count = 0;  // elements that were looked at
  double log2_std = 0, median = 0;
};
MagnitudeSpread magnitude_spread(const std::vector<float>& values);

// D05, of matrices of 4,096 elements or more. D06: not finite, constant, all zero. D07: mean and spread
// of embedding and norms. `parameters` says how each begins.
Finding check_magnitudes(const std::vector<ParameterSpec>& parameters, const Weights& weights);
Finding check_values(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                     WeightOrigins origin);
Finding check_bands(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                    WeightOrigins origin);

std::vector<Finding> check_weights(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                                   WeightOrigins origin);

}  // namespace mulligan::doctor
