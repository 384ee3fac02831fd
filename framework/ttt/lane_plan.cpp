#include "framework/ttt/lane_plan.h"

#include <algorithm>

namespace mulligan {
namespace {

// Some 2,000 launches that wait for each other take about 14 ms: as many tokens at the record's 0.35 GFLOP
// per token and 400 TFLOP/s.
constexpr std::int64_t launch_tokens = 16384;

// Lanes that take batches one after the other.
class Simulation {
 public:
  Simulation(const DocumentPlan& plan, std::int64_t context_tokens, std::int64_t lanes)
      : plan_(plan), context_tokens_(context_tokens), free_at_(static_cast<std::size_t>(lanes), 0) {}

  // From position `first` of the queue on, until the lanes have finished so many documents that all of them
  // are `boundary`; then none takes another batch. The end of what they took.
  std::int64_t run(std::int64_t first, std::optional<std::int64_t> boundary,
                   std::vector<std::int64_t>& lane_of) {
    std::ranges::fill(free_at_, *std::ranges::max_element(free_at_));
    std::vector<Finish> under_way;
    std::int64_t next = first;
    while (next < static_cast<std::int64_t>(plan_.queue.size())) {
      const auto free = std::ranges::min_element(free_at_);
      if (boundary && next > first && reached(under_way, *free, *boundary)) break;
      const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(next)];
      *free += predicted_cost(plan_, batch, context_tokens_);
      under_way.push_back({*free, static_cast<std::int64_t>(batch.batch.documents.size())});
      lane_of.push_back(free - free_at_.begin());
      ++next;
    }
    for (const Finish& batch : under_way) finished_documents_ += batch.documents;
    return next;
  }

 private:
  struct Finish {
    std::int64_t at, documents;
  };
  bool reached(const std::vector<Finish>& under_way, std::int64_t now, std::int64_t boundary) const {
    std::int64_t documents = finished_documents_, finished = 0;
    for (const Finish& batch : under_way) {
      if (batch.at > now) continue;
      documents += batch.documents;
      ++finished;
    }
    return finished > 0 && documents >= boundary;
  }

  const DocumentPlan& plan_;
  std::int64_t context_tokens_;
  std::vector<std::int64_t> free_at_;
  std::int64_t finished_documents_ = 0;
};

}  // namespace

std::int64_t predicted_cost(const DocumentPlan& plan, const PlannedBatch& batch,
                            std::int64_t context_tokens) {
  std::int64_t cost = 0;
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
    cost +=
        launch_tokens + window_documents(plan, batch, chunk) * window_context(batch, chunk, context_tokens);
  }
  return cost;
}

LanePlan plan_lanes(const DocumentPlan& plan, std::int64_t context_tokens,
                    const std::vector<std::int64_t>& boundaries, std::int64_t lanes) {
  LanePlan result;
  Simulation simulation(plan, context_tokens, lanes);
  const auto batches = static_cast<std::int64_t>(plan.queue.size());
  std::size_t phase = 0;
  for (std::int64_t first = 0; first < batches;) {
    std::optional<std::int64_t> boundary;
    if (phase < boundaries.size()) boundary = boundaries[phase++];
    const std::int64_t end = simulation.run(first, boundary, result.lanes);
    result.stretches.push_back({first, end, boundary});
    first = end;
  }
  return result;
}

std::vector<std::int64_t> LanePlan::order() const {
  std::vector<std::int64_t> order;
  for (const Stretch& stretch : stretches) {
    const auto begin = static_cast<std::ptrdiff_t>(order.size());
    for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) order.push_back(queue);
    std::stable_sort(order.begin() + begin, order.end(), [&](std::int64_t a, std::int64_t b) {
      return lanes[static_cast<std::size_t>(a)] < lanes[static_cast<std::size_t>(b)];
    });
  }
  return order;
}

DrawNumbers number_draws(const DocumentPlan& plan, const LanePlan& lanes, std::int64_t full,
                         bool resets_draw) {
  DrawNumbers numbers;
  std::int64_t next = 0;
  for (const LanePlan::Stretch& stretch : lanes.stretches) {
    numbers.stretches.push_back(next++);
    for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) {
      numbers.batches.push_back(next);
      const auto& documents = plan.queue[static_cast<std::size_t>(queue)].batch.documents;
      if (resets_draw || static_cast<std::int64_t>(documents.size()) != full) ++next;
    }
  }
  return numbers;
}

}  // namespace mulligan
