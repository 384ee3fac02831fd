#include "framework/ttt/document_plan.h"

#include <algorithm>
#include <tuple>

#include "framework/core/error.h"
#include "framework/core/philox.h"

namespace mulligan {
namespace {

std::int64_t chunk_tokens_of(const TttConfig& config, std::int64_t longest_targets) {
  for (std::size_t i = 0; i < config.chunk_limits.size(); ++i) {
    if (static_cast<double>(longest_targets) <= config.chunk_limits[i]) {
      return static_cast<std::int64_t>(config.chunk_sizes[i]);
    }
  }
  return config.chunk_tokens;
}

// Numbers of the documents to score, ascending.
std::vector<int> chosen_documents(const std::vector<Document>& documents, const TttConfig& config) {
  std::vector<int> chosen;
  if (config.document_fraction < 1.0) {
    chosen = sample_documents(static_cast<int>(documents.size()), config.document_fraction,
                              static_cast<std::uint64_t>(config.document_seed));
  } else {
    for (std::size_t i = 0; i < documents.size(); ++i) chosen.push_back(static_cast<int>(i));
  }
  std::erase_if(chosen, [&](int number) { return documents[static_cast<std::size_t>(number)].length < 2; });
  return chosen;
}

}  // namespace

DocumentPlan plan_documents(std::span<const std::uint16_t> tokens, int bos_id, const TttConfig& config) {
  DocumentPlan plan;
  plan.documents = find_documents(tokens, bos_id);
  if (plan.documents.empty()) {
    throw data_error(
        "the {} validation tokens hold no BOS token ({}), so there is no document to adapt to; prepare the "
        "data anew with BOS in front of each document.",
        tokens.size(), bos_id);
  }
  const std::vector<int> chosen = chosen_documents(plan.documents, config);
  if (chosen.empty()) {
    throw data_error("none of the {} validation documents has a token to score; give longer validation data.",
                     plan.documents.size());
  }
  std::vector<Document> subset;
  for (const int number : chosen) subset.push_back(plan.document(number));
  const auto order =
      config.order == DocumentOrder::longest_first ? BatchOrder::longest_first : BatchOrder::shortest_first;
  for (DocumentBatch& batch : batch_documents(subset, static_cast<int>(config.batch_documents), order)) {
    for (int& slot : batch.documents) slot = chosen[static_cast<std::size_t>(slot)];
    PlannedBatch planned;
    const std::int64_t longest = plan.targets(batch.documents.back());
    planned.chunk_tokens = chunk_tokens_of(config, longest);
    planned.chunks = chunk_count(longest, planned.chunk_tokens);
    planned.batch = std::move(batch);
    plan.queue.push_back(std::move(planned));
  }
  plan.chosen_documents = static_cast<std::int64_t>(chosen.size());
  return plan;
}

std::int64_t window_context(const PlannedBatch& batch, std::int64_t chunk, std::int64_t context_tokens) {
  return std::min((chunk + 1) * batch.chunk_tokens, context_tokens);
}

std::int64_t window_documents(const DocumentPlan& plan, const PlannedBatch& batch, std::int64_t chunk) {
  const std::vector<int>& documents = batch.batch.documents;  // ascending by length
  const auto active = std::ranges::count_if(
      documents, [&](int number) { return chunk < chunk_count(plan.targets(number), batch.chunk_tokens); });
  if (active <= 8) return active;
  std::int64_t step = 4;  // 2^n and 3 * 2^n: at most a third of the windows is empty
  while (4 * step < active) step *= 2;
  const std::int64_t rounded = (active + step - 1) / step * step;
  return std::min(rounded, static_cast<std::int64_t>(documents.size()));
}

std::vector<std::int64_t> phase_boundaries(const TttConfig& config, std::int64_t documents) {
  std::vector<std::int64_t> boundaries;
  const std::int64_t prefix = std::min(config.prefix_documents, documents);
  if (prefix == 0) return boundaries;
  for (std::int64_t i = 0; i < config.phases; ++i) boundaries.push_back(prefix * (i + 1) / config.phases);
  return boundaries;
}

std::vector<std::uint16_t> phase_tokens(std::span<const std::uint16_t> tokens, const DocumentPlan& plan,
                                        std::vector<ScoredDocument> scored, std::int64_t boundary) {
  std::ranges::sort(scored, {}, [](const ScoredDocument& d) { return std::tuple(d.batch_index, d.slot); });
  scored.resize(std::min(scored.size(), static_cast<std::size_t>(boundary)));
  std::vector<std::uint16_t> collected;
  for (const ScoredDocument& one : scored) {
    const Document& document = plan.document(one.number);
    const auto slice =
        tokens.subspan(static_cast<std::size_t>(document.start), static_cast<std::size_t>(document.length));
    collected.insert(collected.end(), slice.begin(), slice.end());
  }
  return collected;
}

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

namespace {

// Of a chunk that trains, in forward passes: forward, backward and update.
constexpr std::int64_t training_passes = 4;
constexpr std::int64_t fewest_compared_tokens = std::int64_t{1} << 22;

}  // namespace

std::vector<PlannedChunk> shuffled_chunks(const DocumentPlan& plan, std::int64_t context_tokens,
                                          const char* purpose) {
  std::vector<PlannedChunk> chunks;
  for (std::size_t queue = 0; queue < plan.queue.size(); ++queue) {
    const PlannedBatch& batch = plan.queue[queue];
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      const std::int64_t tokens =
          window_documents(plan, batch, chunk) * window_context(batch, chunk, context_tokens);
      chunks.push_back({static_cast<std::int64_t>(queue), chunk, tokens,
                        chunk + 1 < batch.chunks ? training_passes * tokens : tokens});
    }
  }
  const PhiloxStream order(0, purpose);
  std::vector<std::pair<std::uint32_t, std::size_t>> places;
  for (std::size_t i = 0; i < chunks.size(); ++i) places.emplace_back(order.bits(i), i);
  std::ranges::sort(places);
  std::vector<PlannedChunk> shuffled;
  for (const auto& [key, place] : places) shuffled.push_back(chunks[place]);
  return shuffled;
}

std::set<std::pair<std::int64_t, std::int64_t>> compared_chunks(const DocumentPlan& plan,
                                                                std::int64_t context_tokens) {
  const std::vector<PlannedChunk> chunks = shuffled_chunks(plan, context_tokens, "ttt/compared chunks");
  std::int64_t cost = 0, tokens = 0;
  for (const PlannedChunk& one : chunks) cost += one.cost;
  const std::int64_t most = std::max(cost / 100, fewest_compared_tokens);
  std::set<std::pair<std::int64_t, std::int64_t>> compared;
  for (const PlannedChunk& one : chunks) {
    if (tokens + one.tokens > most) continue;
    tokens += one.tokens;
    compared.insert({one.queue, one.chunk});
  }
  return compared;
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

DrawNumbers number_draws(const LanePlan& lanes, const std::function<bool(std::int64_t)>& draws) {
  DrawNumbers numbers;
  std::int64_t next = 0;
  for (const LanePlan::Stretch& stretch : lanes.stretches) {
    numbers.stretches.push_back(next++);
    for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) {
      numbers.batches.push_back(next);
      if (draws(queue)) ++next;
    }
  }
  return numbers;
}

}  // namespace mulligan
