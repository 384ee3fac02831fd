// A sweep's many seeds as one file: quantised differences from the weights that all began with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace mulligan {

// Of a sweep: bits = 0 stores nothing; mean_bits = 0: TVQ, else RTVQ (task_vectors/pack.h).
struct SweepVectorsConfig {
  std::int64_t bits = 0;
  std::int64_t mean_bits = 0;
};

struct StoredVectors {
  std::filesystem::path file;
  std::size_t runs = 0;
  std::size_t file_bytes = 0;
  std::size_t weights_bytes = 0;  // of the runs' files of weights
  double largest_error = 0;       // of any weight of any run, from the runs' own
  std::string sentence;           // all of this, for the log
};

// Packs the weights of `runs` (directories of finished runs) as differences from `initial_weights` into one file in
// `folder`. Throws data_error or run_error.
using StoreVectors = std::function<StoredVectors(
    const std::filesystem::path& folder, const std::vector<std::filesystem::path>& runs,
    const std::string& initial_weights, const SweepVectorsConfig& config)>;

// Markdown: of each file its runs, bytes, share of the runs' own weights, largest error; what it is.
std::string vectors_table(const std::vector<StoredVectors>& stored);

}  // namespace mulligan
