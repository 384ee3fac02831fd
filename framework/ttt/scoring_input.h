// What a scoring refuses, and the validation tokens that it reads.
#pragma once

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"

namespace mulligan {

// [ttt] lanes, for so many ranks. Throws config_error where there are fewer lanes than ranks.
std::int64_t lanes_for(const LoadedConfig& loaded, int world_size);
// Throws config_error where a configuration cannot be scored, or not under its rules.
void require_scorable(const LoadedConfig& loaded);

// The validation tokens that test-time training scores.

// All of them; whole rows where the configuration leaves the remainder unscored. Throws data_error when a
// file is bad or nothing is left.
ValidationSet scored_validation(const RunConfig& config);

// Counts the bytes of all tokens that test-time training will score by the byte table and by decoding. Throws
// data_error when the two differ: bits per byte could not be given, and hours of scoring would be lost.
void require_equal_bytes(const ValidationSet& validation, const TttConfig& config);

// Adds the byte rule, and the bytes of the scored tokens by each rule, to a score.
void add_byte_rules(const ValidationSet& validation, const TttConfig& config, EvalResult& result);

}  // namespace mulligan
