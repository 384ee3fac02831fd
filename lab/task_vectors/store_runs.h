// The weights of a sweep's runs as one file of task vectors.
#pragma once

#include "tools/sweep/sweep_vectors.h"

namespace mulligan::task_vectors {

// Packs the weights of `runs` (directories of finished runs) as differences from `initial_weights` into
// vectors.safetensors beside them. Nothing of the runs is changed or removed: the file is lossy, and their
// scores are those of their exact weights. Throws data_error or run_error.
StoredVectors store_runs(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& runs,
                         const std::string& initial_weights, const SweepVectorsConfig& config);

}  // namespace mulligan::task_vectors
