// Where test-time training stands between two batches of documents: all that the rest of it depends on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/ttt/ttt_report.h"

namespace mulligan {

struct TttStanding {
  std::int64_t next_queue = 0;  // the next batch, by its position in the order of scoring
  std::int64_t draw = 0;        // number of the next draw event
  TttReport report;             // batches and phases so far, collapse; no bins
  ScoreSums sums, reference;    // in the order of booking: fp64 sums depend on it
  std::vector<float> losses;    // by stream position; of tokens without a score: 0
  // Device tensors by name: adapters that later batches inherit and, once it was trained, the base model.
  std::map<std::string, std::vector<std::byte>> tensors;
};

}  // namespace mulligan
