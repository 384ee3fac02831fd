#include "lab/task_vectors/store_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/report/run_directory.h"
#include "lab/task_vectors/pack.h"
#include "lab/task_vectors/task_vectors_file.h"

namespace mulligan::task_vectors {

StoredVectors store_runs(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& runs,
                         const std::string& initial_weights, const SweepVectorsConfig& config) {
  StoredVectors stored;
  stored.runs = runs.size();
  std::vector<Model> models;
  for (const auto& run : runs) {
    models.push_back(open_model(run));
    stored.weights_bytes += std::filesystem::file_size(RunFiles{run}.weights());
  }
  const TaskVectors vectors = pack(open_model(initial_weights), models,
                                   {static_cast<int>(config.bits), static_cast<int>(config.mean_bits)});
  stored.file = folder / "vectors.safetensors";
  stored.file_bytes = write_task_vectors(stored.file, vectors);
  for (const Task& task : vectors.tasks)
    stored.largest_error = std::max(stored.largest_error, task.largest_error);
  stored.sentence = fmt::format(
      "'{}': {} runs in {} bytes in place of {}; lossy, largest error of a weight {:.3g}; the runs keep "
      "their exact weights",
      stored.file.string(), stored.runs, stored.file_bytes, stored.weights_bytes, stored.largest_error);
  return stored;
}

}  // namespace mulligan::task_vectors
