// What ledger.rules = "strict" asks of a result: the whole validation set, and the program's own code.
#pragma once

#include <string>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin_host.h"
#include "framework/run/run_plugins.h"

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

// ledger.rules = "strict": what computes a score is code that the program was built with.

// Under strict rules throws run_error where a plugin that `use` scores with (the backends; of an adaptation
// also those of [ttt] and the communicator, of an ensemble its plugin) is none of the program's build, and where rows of
// [[backend.kernels]] put other code in the place of a kernel: counting the source tree says nothing about it. What
// only trains is judged where the result is (train_result.h). After resolve_run_plugins().
void require_own_scoring_code(const LoadedConfig& loaded, PluginHost& host, PluginUse use);

}  // namespace mulligan
