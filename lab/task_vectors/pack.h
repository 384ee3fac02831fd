// Makes task vectors from fine-tuned models and their base.
#pragma once

#include <vector>

#include "lab/task_vectors/task_vectors.h"

namespace mulligan::task_vectors {

struct PackOptions {
  int bits = 4;       // of each task, 2 to 8
  int base_bits = 0;  // of the mean of all tasks, 2 to 8; 0: none (TVQ)
};

// Quantises models[t] - base, one parameter at a time. Memory is that of the codes and of one parameter of all models. Throws
// config_error for bits outside of their range, no model, or two of one name. Throws data_error if a model has other parameters
// than the base, if a value is not finite, or if the weights could not be unpacked as finite numbers.
TaskVectors pack(const Model& base, const std::vector<Model>& models, const PackOptions& options);

}  // namespace mulligan::task_vectors
