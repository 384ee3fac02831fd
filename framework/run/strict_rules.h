// What ledger.rules = "strict" asks of a result: the whole validation set.
#pragma once

#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"

namespace mulligan {

// ledger.rules = "strict": a result is of the whole validation set, every token scored, its bytes certain.

// What strict rules refuse in `validation`, a sentence without full stop each: shards of the same manifest or
// name next to it are left out, a shard is in it twice, it has tokens before its first document, it cannot
// say for certain how many bytes it has.
std::vector<std::string> strict_validation_problems(const RunConfig& config, const ValidationSet& validation);
// Before anything is scored: under strict rules throws data_error that names all of these.
void require_strict_validation(const RunConfig& config, const ValidationSet& validation);

// Why a training starts with what it has not learned on its clock, without full stop; "": it does not.
std::string borrowed_start(const RunConfig& config);

// How many tokens of its set a score left out, in words; "" for a score of all tokens, and for one that
// does not say which set it is of. The one count that train, eval, quantize, ttt and record rely on.
std::string partial_score(const EvalResult& score);

// Under strict rules throws run_error for a partial score.
void require_whole_score(const LedgerConfig& limits, const EvalResult& score);

}  // namespace mulligan
