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
  std::vector<std::int64_t> done;        // scored batches, by position in the queue, in the order of scoring
  TttReport report;                      // reported batches and phases so far, collapse; no bins
  std::vector<TttPendingBatch> pending;  // batches that are done and not reported
  ScoreSums sums, reference;             // of the reported batches
  ScoreSums untransformed;               // of the same
  std::vector<float> losses;             // by stream position; of tokens without a score: 0
  std::vector<float> plain_losses;       // the same without the score transform; empty where there is none
  // Device tensors by name: adapters that the next batch inherits and, once it was trained, the base model.
  std::map<std::string, std::vector<std::byte>> tensors;
};

}  // namespace mulligan
