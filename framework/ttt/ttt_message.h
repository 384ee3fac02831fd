// What the ranks of a test-time training tell each other where all meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ttt/ttt_report.h"

namespace mulligan {

enum class TttEventKind { create, reset, score, book, reveal, update, phase, collapse, fallback };
const char* event_name(TttEventKind kind);

struct TttMessage {
  struct Event {
    TttEventKind kind = TttEventKind::score;
    std::int64_t queue = -1, batch_index = -1, chunk = -1;
    std::vector<int> documents;
  };
  std::vector<TttPendingBatch> batches;  // scored since the last meeting
  TttChecks checks;                      // of the rank, so far
  std::string void_reason;               // why its scores must not be used; empty: they may
  std::vector<Event> events;             // since the last meeting, in order; where somebody keeps them
};

std::string to_text(const TttMessage& message);
// Throws run_error where it is none.
TttMessage read_ttt_message(const std::string& text);

}  // namespace mulligan
