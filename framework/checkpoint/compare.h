// Differences between two sets of tensors.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "framework/core/safetensors.h"

namespace mulligan {

// The log2-magnitude test: does a weight matrix look like numbers of the dtype its file claims?
//
// For Gaussian-like weights the standard deviation of log2|x| is 1.60 at any scale. BF16 bytes decoded as F16 crowd into [1, 2):
// 0.2. F16 bytes decoded as BF16 scatter over a hundred binary orders: 12.7.

enum class MagnitudeVerdict { plausible, suspicious, bf16_read_as_f16, f16_read_as_bf16 };

// Of a sample's elements that are neither zero nor infinite.
struct MagnitudeReport {
  std::size_t count = 0;
  double log2_spread = 0;  // standard deviation of log2|x|
  double median = 0;       // of |x|
  MagnitudeVerdict verdict = MagnitudeVerdict::plausible;
};

// With fewer elements the test says too little: the verdict is plausible.
inline constexpr std::size_t magnitude_test_elements = 4096;

// The test of one matrix. Not for norm vectors, gains and biases, whose elements may all be equal. A narrow spread is a wrong dtype's
// only with a median from 1/4 to 2: the first updates of AdamW move every element by as much.
MagnitudeReport test_magnitudes(std::span<const float> values);

// "the spread of log2|x| is 0.21: this looks like BF16 bytes decoded as F16"
std::string describe(const MagnitudeReport& report);

struct TensorDifference {
  std::string name;
  std::string what;  // "differs in 12 of 512 elements, at most by 3.1e-05", "only in the first", ...
};

// Names in both, compared element by element and bit by bit; sorted by name. Empty: identical.
std::vector<TensorDifference> compare_tensors(const SafetensorsFile& first, const SafetensorsFile& second);

}  // namespace mulligan
