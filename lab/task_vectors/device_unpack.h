// Loads task vectors into a model on a backend: the device unpacks the codes (kernel add_codes).
#pragma once

#include "framework/run/loaded_model.h"
#include "lab/task_vectors/task_vectors.h"

namespace mulligan::task_vectors {

// Fills the masters of `layouts` with the weights of a task. The base's weights and the packed codes go to the device and are
// added there. The bits are those of unpacked(), rounded once more if a master is bf16. Throws data_error if the base is
// another, or if the model of `layouts` has other parameters.
void load_task(const TaskVectors& vectors, const std::string& source, const Model& base, std::size_t task,
               TensorStore& store, const std::vector<ParameterLayout>& layouts);

}  // namespace mulligan::task_vectors
