// Merging: one model of several that were fine-tuned from one base.
//
// With tau_t = theta_t - theta_base, T of them, all sums in f64 and rounded to f32 once:
//   task_arithmetic  theta_base + scale sum_t tau_t                         (Ilharco et al., arXiv 2212.04089)
//   average          theta_base + scale mean_t tau_t; scale 1 is the mean of the models
//   ties             theta_base + scale m, with m by trim, elect and merge  (Yadav et al., arXiv 2306.01708):
//                    of each tau_t only the `keep` share of largest magnitude over all weights stays (equal ones
//                    at the border all stay); each weight's sign is that of the sum of what stays (where that
//                    is 0: the sign that most weights have); m = mean of what stays and has this sign, 0 without
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "lab/task_vectors/model_file.h"

namespace mulligan::task_vectors {

enum class MergeMethod { task_arithmetic, average, ties };

struct MergeOptions {
  MergeMethod method = MergeMethod::task_arithmetic;
  double scale = 1;   // finite
  double keep = 0.2;  // of ties, above 0 to 1
};

// The merged weights, parameter by parameter in the base's order. Throws config_error for options outside of their range or no
// models. Throws data_error if a model has other parameters than the base, or the result is not finite. Reads each model once,
// `ties` three times. Memory is one parameter of all models; `ties` also needs the magnitudes of one model.
void merge(const Model& base, const std::vector<Model>& models, const MergeOptions& options,
           const std::function<void(std::size_t index, std::vector<float> values)>& take);

}  // namespace mulligan::task_vectors
