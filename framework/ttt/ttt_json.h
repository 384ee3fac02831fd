// A run of test-time training as JSON, with units in the names; numbers that are not finite become null.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/ttt/run_ttt.h"

namespace mulligan {

using Json = nlohmann::ordered_json;

// The library writes doubles so that reading gives the same bits; what is not finite as null, which is read
// as NaN.
double json_number(const Json& json);
std::vector<AdapterNorm> read_norms(const Json& json);
Json pending_json(const TttPendingBatch& batch);
TttPendingBatch read_pending(const Json& json);

Json batch_json(const TttBatchReport& batch);
Json phase_json(const TttPhaseReport& phase);
Json length_bin_json(const TttLengthBin& bin);
// Both scores, and how the run went, without batches, phases and bins.
Json totals_json(const TttResult& result);

// Everything: the text of ttt_result.json.
std::string ttt_json(const TttResult& result);
// The same file of a run that is void: no score, and why.
std::string void_ttt_json(const std::string& reason);

}  // namespace mulligan
