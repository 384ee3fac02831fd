// evaluations.jsonl: the scores that were made of a run's weights after training, one JSON object per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "framework/core/seal.h"

namespace mulligan {

struct EvaluationRecord {
  std::string weights;    // what was scored, as the user named it
  bool artifact = false;  // it was quantised
  std::string mode;       // how, in words: "rows of 512 tokens"
  double val_loss_nats = 0;
  double val_bpb = 0;  // NaN without bytes
  std::uint64_t val_tokens = 0;
  std::uint64_t val_bytes = 0;
  double seconds = 0;
  std::string weights_sha256 = {};  // of the tensors, or of the artifact
  Seal seal = Seal::absent;         // of a line that was read
};

// The record as it is written. Numbers that are not finite become null.
nlohmann::ordered_json evaluation_json(const EvaluationRecord& record);

// Adds a line. Throws run_error when the file cannot be written.
void add_evaluation(const std::filesystem::path& path, const EvaluationRecord& record);

}  // namespace mulligan
