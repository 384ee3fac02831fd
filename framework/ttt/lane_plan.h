// LanePlan: which lane scores which batch of documents, and when all lanes meet.
//
// A lane is a chain of batches whose adapters are inherited from one to the next: what one rank of the
// record's script does. The batches form one queue; a lane that is free takes the next. Who is free when
// follows from predicted costs, not from clocks, so the plan is the same on every machine, and any number of
// processes can work through its lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/ttt/document_plan.h"

namespace mulligan {

// Time of a batch on one device, in tokens of its windows: each chunk costs its windows' tokens, and a fixed
// amount for the launches that wait for each other.
std::int64_t predicted_cost(const DocumentPlan& plan, const PlannedBatch& batch, std::int64_t context_tokens);

struct LanePlan {
  // The batches [first, end) of the queue, between two meetings of all lanes.
  struct Stretch {
    std::int64_t first = 0, end = 0;
    // It ends because so many documents were scored: then the base model is trained on as many. Lanes that
    // are at work then finish their batch, so that more may have been scored.
    std::optional<std::int64_t> boundary;
  };
  std::vector<Stretch> stretches;   // none is empty
  std::vector<std::int64_t> lanes;  // of each batch, by its position in the queue

  // The order in which one process works: stretch by stretch, lane by lane.
  std::vector<std::int64_t> order() const;
};

// `boundaries`: counts of scored documents after which the base model is trained, ascending
// (phase_boundaries); empty: never.
LanePlan plan_lanes(const DocumentPlan& plan, std::int64_t context_tokens,
                    const std::vector<std::int64_t>& boundaries, std::int64_t lanes);

// Numbers of the events at which adapters are drawn (AdapterDraws), counted along the queue, so that they
// depend on neither lanes nor ranks but for where the base model is trained.
struct DrawNumbers {
  std::vector<std::int64_t> stretches;  // of the adapters that every lane begins it with
  std::vector<std::int64_t>
      batches;  // by position in the queue: a batch of another size than `full`; others where they draw
};
// `resets_draw`: whether a batch of full size draws adapters, too.
DrawNumbers number_draws(const DocumentPlan& plan, const LanePlan& lanes, std::int64_t full,
                         bool resets_draw);

}  // namespace mulligan
