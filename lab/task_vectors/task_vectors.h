// Task vectors: fine-tuned models as quantised differences from their common base.
//
// TVQ (arXiv 2503.06921): each task's difference tau_t = theta_t - theta_base is quantised tensor by tensor (bit_packing.h) to
// `bits` bits. RTVQ: the mean of the differences is quantised once to `base_bits` bits, and each task keeps the rest in `bits`
// bits. The rest is relative to the quantised mean, so the mean's error does not remain (error correction). With T tasks this
// takes bits + base_bits / T bits per weight, and two f64 for each tensor of each task and of the mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/task_vectors/bit_packing.h"
#include "lab/task_vectors/model_file.h"

namespace mulligan::task_vectors {

// One quantised tensor.
struct Codes {
  Grid grid;
  std::vector<std::byte> packed;  // bit_packing.h
  bool operator==(const Codes&) const = default;
};

struct Task {
  std::string name;                             // unique among the tasks
  std::string sha256;                           // tensors_sha256 of the weights that it was made of
  double largest_error = 0;                     // max |unpacked - original| over all weights
  std::map<std::string, std::string> metadata;  // of the weights that it was made of
  std::vector<Codes> tensors;                   // by parameter
  bool operator==(const Task&) const = default;
};

struct TaskVectors {
  std::string base_name, base_sha256;  // tensors_sha256 of the base
  int bits = 4;                        // of the tasks
  int base_bits = 0;                   // of the mean; 0: TVQ, without one
  std::vector<Parameter> parameters;   // sorted by name
  std::vector<Codes> mean;             // by parameter; empty in TVQ
  std::vector<Task> tasks;
  bool operator==(const TaskVectors&) const = default;

  // The tensors' bytes by the formula: for each parameter of n elements and each task
  // ceil(n bits / 8) + 16, and in RTVQ once more with base_bits. The file adds its header.
  std::size_t tensor_bytes() const;
  std::size_t elements() const;  // of one model
  // Index of the task of that name. Throws config_error that lists the names.
  std::size_t index_of(const std::string& task) const;
};

// The weights of a task, parameter by parameter: theta_base, plus the mean if there is one, plus the task's own part. Each sum
// is rounded to f32 (add_codes). `vectors` must outlive the model. Throws data_error for another base than that of
// `vectors`, with both digests, or if a sum is not finite.
Model unpacked(const TaskVectors& vectors, const std::string& source, const Model& base, std::size_t task);

struct PackOptions {
  int bits = 4;       // of each task, 2 to 8
  int base_bits = 0;  // of the mean of all tasks, 2 to 8; 0: none (TVQ)
};

// Quantises models[t] - base, one parameter at a time. Memory is that of the codes and of one parameter of all models. Throws
// config_error for bits outside of their range, no model, or two of one name. Throws data_error if a model has other parameters
// than the base, if a value is not finite, or if the weights could not be unpacked as finite numbers.
TaskVectors pack(const Model& base, const std::vector<Model>& models, const PackOptions& options);

// Merging: one model of several that were fine-tuned from one base.
//
// With tau_t = theta_t - theta_base, T of them, all sums in f64 and rounded to f32 once:
//   task_arithmetic  theta_base + scale sum_t tau_t                         (Ilharco et al., arXiv 2212.04089)
//   average          theta_base + scale mean_t tau_t; scale 1 is the mean of the models
//   ties             theta_base + scale m, with m by trim, elect and merge  (Yadav et al., arXiv 2306.01708):
//                    of each tau_t only the `keep` share of largest magnitude over all weights stays (equal ones
//                    at the border all stay); each weight's sign is that of the sum of what stays (where that
//                    is 0: the sign that most weights have); m = mean of what stays and has this sign, 0 without
enum class MergeMethod { task_arithmetic, average, ties };

struct MergeOptions {
  MergeMethod method = MergeMethod::task_arithmetic;
  double scale = 1;   // finite
  double keep = 0.2;  // of ties, above 0 to 1
};

// The merged weights by parameter, in the base's order. Throws config_error for options outside of their range or no
// models. Throws data_error if a model has other parameters than the base, or the result is not finite. Reads each model once,
// `ties` three times. Memory is the result and one parameter of all models; `ties` also needs the magnitudes of one model.
std::vector<std::vector<float>> merge(const Model& base, const std::vector<Model>& models,
                                      const MergeOptions& options);

}  // namespace mulligan::task_vectors
