#include "framework/artifact/calibration_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/philox.h"

namespace mulligan {

std::vector<std::filesystem::path> calibration_shards(const std::vector<std::filesystem::path>& shards,
                                                      std::int64_t stride) {
  std::vector<std::filesystem::path> taken;
  for (std::size_t i = 0; i < shards.size(); i += static_cast<std::size_t>(stride))
    taken.push_back(shards[i]);
  return taken;
}

CalibrationRows::CalibrationRows(const std::vector<std::filesystem::path>& shards, std::int64_t row_tokens,
                                 std::int64_t vocabulary, std::uint64_t seed)
    : row_tokens_(row_tokens), vocabulary_(vocabulary), seed_(seed) {
  const PhiloxStream phases(seed, "calibration/phase");
  for (const std::filesystem::path& path : shards) {
    Source source{Shard(path), 0, 0};
    const auto tokens = source.shard.token_count();
    // A shard that holds one row only has no room for a phase.
    const std::int64_t room = std::clamp<std::int64_t>(tokens - row_tokens + 1, 1, row_tokens);
    source.phase = static_cast<std::int64_t>(phases.uniform(sources_.size()) * static_cast<double>(room));
    source.rows = std::max<std::int64_t>(0, (tokens - source.phase) / row_tokens);
    count_ += source.rows;
    sources_.push_back(std::move(source));
  }
  data_error_if(
      count_ == 0,
      "none of the {} training shards holds {} tokens, one row of calibration; prepare more text or "
      "shorten train.sequence_length",
      shards.size(), row_tokens);
  order_.resize(static_cast<std::size_t>(count_));
}

// Fisher-Yates, a step for each row.
std::int64_t CalibrationRows::draw() {
  const std::int64_t place = drawn_ % count_;
  if (place == 0) std::iota(order_.begin(), order_.end(), std::int64_t{0});
  const PhiloxStream draws(seed_, "calibration/order");
  const auto other = static_cast<std::int64_t>(draws.uniform(static_cast<std::uint64_t>(drawn_++)) *
                                               static_cast<double>(count_ - place));
  std::int64_t& row = order_[static_cast<std::size_t>(place)];
  std::swap(row, order_[static_cast<std::size_t>(place + other)]);
  return row;
}

void CalibrationRows::next(std::span<std::int32_t> rows) {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(row_tokens_));
  for (std::size_t begin = 0; begin < rows.size(); begin += tokens.size()) {
    std::int64_t row = draw();
    std::size_t index = 0;
    while (row >= sources_[index].rows) row -= sources_[index++].rows;
    const Source& source = sources_[index];
    const std::int64_t first = source.phase + row * row_tokens_;
    source.shard.read(first, tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] >= vocabulary_) {
        throw data_error(
            "shard '{}' has token {} at position {}, outside of the vocabulary of {}; it was made with "
            "another tokenizer",
            source.shard.path().string(), tokens[i], first + static_cast<std::int64_t>(i), vocabulary_);
      }
      rows[begin + i] = tokens[i];
    }
  }
}

}  // namespace mulligan
