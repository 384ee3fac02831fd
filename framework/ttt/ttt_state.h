// An unfinished test-time training on disk (ScoreState).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "framework/core/safetensors.h"
#include "framework/run/score_state.h"
#include "framework/ttt/ttt_standing.h"

namespace mulligan {

struct TttProgress {
  // The scoring without test-time training comes first: its losses by stream position, and the next row. Its
  // row stays at the number of rows once it is done.
  std::vector<float> reference;
  std::size_t reference_row = 0;
  bool reference_done = false;
  std::optional<TttStanding> standing;  // absent before the first batch is done
};

void save_ttt(ScoreState& state, const TttProgress& progress, const PhaseSeconds& seconds);
// Throws data_error, naming the file, where it is no such state.
TttProgress read_ttt(const SafetensorsFile& file);

}  // namespace mulligan
