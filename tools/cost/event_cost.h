// What the events of a rehearsed step cost on a card.
#pragma once

#include <map>

#include "tools/cost/prediction.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {

class EventCost {
 public:
  // `rehearsal` must outlive it, and its last step be that of the events.
  EventCost(const StepRehearsal& rehearsal, std::int64_t segment_tokens, const Card& card)
      : rehearsal_(rehearsal), segment_tokens_(segment_tokens), card_(card) {}

  // Of one event that is no transfer; shapes are left out.
  PredictedRow row(const StepEvent& event) const;

 private:
  const StepRehearsal& rehearsal_;
  std::int64_t segment_tokens_;
  Card card_;
};

}  // namespace mulligan
