// A check of a plugin's adapters before anything is scored.
#pragma once

#include "framework/ttt/adapter_set.h"

namespace mulligan {

// Runs the longest window of `set` with random adapters on made-up tokens, changes the second halves of
// some documents, and compares: the losses of all other documents and of the unchanged halves must stay bit
// for bit the same. The sets of changed documents are such that one document's reading of any other is
// seen. Where the adapters' forward pass has kernels of a plugin, which the row guard (row_guard.h) knows
// nothing of, that is done for every window, and besides for every position p of each: with other tokens
// from p + 1 on, the losses up to p must stay the same. Throws config_error naming the plugin when a loss
// moves: its adapters would carry tokens that are not scored yet into scores. Leaves the adapters
// undefined; create() must follow.
void probe_causality(AdapterSet& set, const BaseModel& model, const TttPlugin& plugin);

}  // namespace mulligan
