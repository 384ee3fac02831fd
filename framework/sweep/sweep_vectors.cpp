#include "framework/sweep/sweep_vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/report/run_directory.h"
#include "framework/task_vectors/pack.h"
#include "framework/task_vectors/task_vectors_file.h"

namespace mulligan {

StoredVectors store_vectors(const std::filesystem::path& folder,
                            const std::vector<std::filesystem::path>& runs,
                            const std::string& initial_weights, const SweepVectorsConfig& config) {
  namespace tv = task_vectors;
  StoredVectors stored;
  std::vector<tv::Model> models;
  for (const auto& run : runs) {
    models.push_back(tv::open_model(run));
    stored.weights_bytes += std::filesystem::file_size(RunFiles{run}.weights());
  }
  const tv::TaskVectors vectors =
      tv::pack(tv::open_model(initial_weights), models,
               {static_cast<int>(config.bits), static_cast<int>(config.mean_bits)});
  stored.file = folder / "vectors.safetensors";
  stored.file_bytes = tv::write_task_vectors(stored.file, vectors);
  for (const tv::Task& task : vectors.tasks)
    stored.largest_error = std::max(stored.largest_error, task.largest_error);
  stored.sentence = fmt::format(
      "'{}': {} runs in {} bytes in place of {}; lossy, largest error of a weight {:.3g}; the runs keep "
      "their "
      "exact weights",
      stored.file.string(), runs.size(), stored.file_bytes, stored.weights_bytes, stored.largest_error);
  return stored;
}

}  // namespace mulligan
