// One run of a record: its stages in its run directory, and what they came to.
#pragma once

#include <cstdint>
#include <filesystem>

#include "framework/config/eval_config.h"
#include "framework/report/run_directory.h"
#include "tools/record/submission.h"

namespace mulligan::record {

struct SeedRun {
  std::int64_t seed = 0;
  std::filesystem::path directory;  // of the run
  std::filesystem::path log;        // all that its stages said
};

enum class SeedStage { train, quantize, adapt, done };
const char* stage_text(SeedStage stage);  // "training"

// The stage that is to be done next in the run directory; under strict rules only where those before it broke
// no budget. `config_sha256` is that of the configuration (config_digest). Throws config_error where the
// directory holds a run of another configuration, run_error as require_limits() does.
SeedStage next_stage(const SeedRun& run, const std::string& config_sha256, const LedgerConfig& limits);

// The result of a run whose stages are all done, from its ledger: seconds and bytes as they count against the
// budgets. Throws data_error if its files contradict one another or lack something, run_error if a budget is
// broken.
SeedResult seed_result(const SeedRun& run, const LedgerConfig& limits);

// Digests of the validation shards and the tokenizer that test-time training had.
Digests scored_data(const RunFiles& files);
// What computed the scores: the backend's device, the instruction set, ranks and lanes. Equal environments repeat a
// score to the last bit, unless libraries of other versions are loaded.
std::string scoring_environment(const RunFiles& files);
// How much of the validation text the training data contain, in the words of training; empty: not measured.
std::string stated_overlap(const RunFiles& files);

}  // namespace mulligan::record
