// A run of test-time training for people.
#pragma once

#include <string>

#include "framework/ttt/ttt_report.h"

namespace mulligan {

// "batch 3 of 20 (64 documents of up to 812 tokens): running val_bpb 1.0712, without 1.0810, |A| 12.1
// drift 1.4, |B| 0.3".
std::string batch_text(const TttBatchReport& batch, std::size_t batches);
// One line per phase: tokens, steps, loss from first to last, seconds.
std::string phase_text(const TttPhaseReport& phase);
// The gain by document length as a table.
std::string bins_text(const TttReport& report);

}  // namespace mulligan
