// What ledger.rules = "strict" asks of a result: the whole validation set.
#pragma once

#include <string>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"

namespace mulligan {

// ledger.rules = "strict": a result is of the whole validation set, every token scored, its bytes certain.

// Before anything is scored: under strict rules throws data_error where `validation` is a part of a set (shards
// of the same manifest or name next to it are left out), holds a shard twice, has tokens before its first
// document, or cannot say for certain how many bytes it has.
void require_strict_validation(const RunConfig& config, const ValidationSet& validation);

// How many tokens of its set a score left out, in words; "" for a score of all tokens, and for one that
// does not say which set it is of. The one count that train, eval, quantize, ttt and record rely on.
std::string partial_score(const EvalResult& score);

// Under strict rules throws run_error for a partial score.
void require_whole_score(const LedgerConfig& limits, const EvalResult& score);

}  // namespace mulligan
