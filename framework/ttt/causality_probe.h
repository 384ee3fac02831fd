// A check of a plugin's adapters before anything is scored.
#pragma once

#include "framework/ttt/adapter_set.h"

namespace mulligan {

// Runs the longest window of `set` with random adapters on made-up tokens, changes the second half of the
// first document, and compares: every other document's losses and those of the unchanged half must stay bit
// for bit the same. Throws config_error naming the plugin when they do not: its adapters would carry tokens
// that are not scored yet into scores. Leaves the adapters undefined; create() must follow.
void probe_causality(AdapterSet& set, const BaseModel& model, const TttPlugin& plugin);

}  // namespace mulligan
