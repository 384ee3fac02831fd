// Rows of training text for calibration: fixed length, shuffled, from all shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "framework/data/shard.h"

namespace mulligan {

// Every `stride`-th of the shards, from the first: with 8, what rank 0 of the record's eight reads.
std::vector<std::filesystem::path> calibration_shards(const std::vector<std::filesystem::path>& shards,
                                                      std::int64_t stride);

// Each shard is cut into rows of `row_tokens` tokens after a random phase in [0, row_tokens); the rows of
// all shards are drawn without replacement. Phases and order are Philox numbers keyed by the seed (streams
// "calibration/phase" and "calibration/order"), so they depend on nothing but the seed and the shards. When
// all rows are drawn, the same ones follow once more. Rows ignore document boundaries.
class CalibrationRows {
 public:
  // Throws data_error when a shard is bad or none holds a row.
  CalibrationRows(const std::vector<std::filesystem::path>& shards, std::int64_t row_tokens,
                  std::int64_t vocabulary, std::uint64_t seed);

  // Different rows there are.
  std::int64_t count() const { return count_; }
  // The next rows; rows.size() is a multiple of row_tokens. Throws data_error for a token outside
  // of the vocabulary.
  void next(std::span<std::int32_t> rows);

 private:
  struct Source {
    Shard shard;
    std::int64_t phase = 0;
    std::int64_t rows = 0;
  };
  std::int64_t draw();

  std::int64_t row_tokens_, vocabulary_;
  std::uint64_t seed_;
  std::vector<Source> sources_;
  std::int64_t count_ = 0;
  std::int64_t drawn_ = 0;
  std::vector<std::int64_t> order_;  // of the rows in this pass, as far as they are drawn
};

}  // namespace mulligan
