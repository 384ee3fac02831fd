#include "framework/sweep/sweep_vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/report/run_directory.h"
#include "framework/stats/markdown_table.h"
#include "framework/task_vectors/pack.h"
#include "framework/task_vectors/task_vectors_file.h"

namespace mulligan {

StoredVectors store_vectors(const std::filesystem::path& folder,
                            const std::vector<std::filesystem::path>& runs,
                            const std::string& initial_weights, const SweepVectorsConfig& config) {
  namespace tv = task_vectors;
  StoredVectors stored;
  stored.runs = runs.size();
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
      stored.file.string(), stored.runs, stored.file_bytes, stored.weights_bytes, stored.largest_error);
  return stored;
}

std::string vectors_table(const std::vector<StoredVectors>& stored) {
  stats::MarkdownTable table({"stored weights", "runs", "bytes", "bytes a run", "of the runs' own files",
                              "largest error of a weight"});
  for (const StoredVectors& one : stored) {
    table.add({one.file.string(), fmt::format("{}", one.runs), fmt::format("{}", one.file_bytes),
               fmt::format("{}", one.file_bytes / one.runs),
               fmt::format("{:.1f} %", 100. * static_cast<double>(one.file_bytes) /
                                           static_cast<double>(one.weights_bytes)),
               fmt::format("{:.3g}", one.largest_error)});
  }
  return table.text() +
         "Quantised differences from init.from, lossy; the runs keep their exact weights, which their scores "
         "are "
         "of.\n";
}

}  // namespace mulligan
