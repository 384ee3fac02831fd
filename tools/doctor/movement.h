// What training did to a run's parameters, seen in some elements of each row: D38 to D40.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "framework/run/parameter_plan.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// At most 16 elements of each row (of many rows some thousands, at even distances), the same ones whenever it is
// asked. A tensor of one dimension is one row, taken whole.
struct Sampled {
  std::int64_t rows = 0, columns = 0;             // of the tensor: all dimensions but the last, and the last
  std::vector<std::int64_t> row;                  // which are sampled
  std::int64_t width = 0;                         // samples of each
  std::vector<float> values;                      // [row.size(), width]
  std::int64_t column(std::size_t sample) const;  // where a sample of a row lies
};
Sampled sample_of(const std::vector<float>& values, const TensorType& type);

// Samples of all parameters by name; `read` gives the values of one.
using Samples = std::map<std::string, Sampled>;
Samples sample_parameters(const std::vector<PlannedParameter>& parameters,
                          const std::function<std::vector<float>(const PlannedParameter&)>& read);

// Parameters before and after some steps.
struct Movement {
  const std::vector<PlannedParameter>& parameters;
  const Samples &before, &after;
  std::int64_t steps = 0;                    // between both
  std::vector<std::string> optimizers = {};  // their names, by PlannedParameter::optimizer
  std::vector<double> rates = {};            // and the rates that they were given
  std::int64_t vocabulary = 0;
  std::vector<double> expected = {};  // how often each token was trained on; empty: not known
};

// D38, D39 and D40. `averaged` are the averages of [ema], by `decay`.
Finding find_frozen_parameters(const Movement& movement);
Finding judge_proportion(const Movement& movement);
Finding judge_average(const Movement& movement, const Samples& averaged, double decay);

// Pairs of neighbours in a sample. Text repeats its pairs many times as often as tokens drawn by chance in the same shares
// would, and prefers (a, b) to (b, a) as other text does.
struct PairOrder {
  std::uint64_t pairs = 0;  // of the training sample
  double repeated = 0;      // equal couples of its pairs, as a multiple of what chance gives; 0: too few
  // The shares of its pairs that are pairs of the other sample, and the same read backwards.
  double forward = 0, backward = 0;
};
PairOrder pair_order(std::span<const std::vector<std::uint16_t>> pieces,
                     std::span<const std::vector<std::uint16_t>> others);

// D37: `training` against itself and the validation data, which may be empty.
Finding judge_order(const PairOrder& seen);

}  // namespace mulligan::doctor
