// samples.jsonl: texts that `mulligan generate` kept of a run, one JSON object per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mulligan {

struct TextSample {
  std::string weights;  // that wrote it, as the user named them
  std::string prompt, text;
  std::int64_t tokens = 0;  // of the text
  double temperature = 0;
  std::uint64_t seed = 0;
};

// Adds a line. Throws run_error when the file cannot be written.
void add_sample(const std::filesystem::path& path, const TextSample& sample);
// The lines in their order; none where there is no file. Throws data_error naming file and line.
std::vector<TextSample> read_samples(const std::filesystem::path& path);

}  // namespace mulligan
