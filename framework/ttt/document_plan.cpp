#include "framework/ttt/document_plan.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/philox.h"

namespace mulligan {
namespace {

std::int64_t chunk_tokens_of(const TttConfig& config, std::int64_t longest_targets) {
  for (std::size_t i = 0; i < config.chunk_limits.size(); ++i) {
    if (static_cast<double>(longest_targets) <= config.chunk_limits[i])
      return static_cast<std::int64_t>(config.chunk_sizes[i]);
  }
  return config.chunk_tokens;
}

}  // namespace

TargetRange DocumentPlan::range(int number) const {
  const std::int64_t first = document(number).start + 1;
  return {first, first + targets(number)};
}

TargetRange DocumentPlan::range(const PlannedBatch& batch, int number, std::int64_t chunk) const {
  const TargetRange all = range(number);
  const std::int64_t first = std::min(all.first + chunk * batch.chunk_tokens, all.last);
  return {first, std::min(first + batch.chunk_tokens, all.last)};
}

std::vector<TargetRange> DocumentPlan::ranges(const PlannedBatch& batch) const {
  std::vector<TargetRange> ranges;
  for (const int number : batch.documents) ranges.push_back(range(number));
  return ranges;
}

DocumentPlan plan_documents(std::span<const std::uint16_t> tokens, int bos_id, const TttConfig& config) {
  DocumentPlan plan;
  plan.documents = find_documents(tokens, bos_id);
  data_error_if(
      plan.documents.empty(),
      "the {} validation tokens hold no BOS token ({}), so there is no document to adapt to; prepare the "
      "data anew with BOS in front of each document.",
      tokens.size(), bos_id);
  std::vector<int> chosen =
      sample_documents(static_cast<int>(plan.documents.size()), config.document_fraction,
                       static_cast<std::uint64_t>(config.document_seed));
  std::erase_if(chosen, [&](int number) { return plan.document(number).length < 2; });
  data_error_if(chosen.empty(),
                "none of the {} validation documents has a token to score; give longer validation data.",
                plan.documents.size());
  std::vector<Document> subset;
  for (const int number : chosen) subset.push_back(plan.document(number));
  for (DocumentBatch& batch :
       batch_documents(subset, static_cast<int>(config.batch_documents), config.order)) {
    for (int& number : batch.documents) number = chosen[static_cast<std::size_t>(number)];
    const std::int64_t longest = plan.targets(batch.documents.back());
    const std::int64_t chunk_tokens = chunk_tokens_of(config, longest);
    plan.queue.push_back({std::move(batch), chunk_tokens, chunk_count(longest, chunk_tokens)});
  }
  plan.chosen_documents = std::ssize(chosen);
  return plan;
}

WindowShape window_shape(const DocumentPlan& plan, const PlannedBatch& batch, std::int64_t chunk,
                         std::int64_t context_tokens) {
  const std::int64_t active = std::ranges::count_if(
      batch.documents, [&](int number) { return plan.range(batch, number, chunk).count() > 0; });
  std::int64_t documents = active;
  if (active > 8) {
    std::int64_t step = 4;  // 2^n and 3 * 2^n: at most a third of the windows is empty
    while (4 * step < active) step *= 2;
    documents = std::min((active + step - 1) / step * step, batch.size());
  }
  return {documents, std::min((chunk + 1) * batch.chunk_tokens, context_tokens), batch.chunk_tokens};
}

std::vector<std::int64_t> phase_boundaries(const TttConfig& config, std::int64_t documents) {
  std::vector<std::int64_t> boundaries;
  const std::int64_t prefix = std::min(config.prefix_documents, documents);
  for (std::int64_t i = 0; prefix > 0 && i < config.phases; ++i)
    boundaries.push_back(prefix * (i + 1) / config.phases);
  return boundaries;
}

std::vector<std::uint16_t> phase_tokens(std::span<const std::uint16_t> tokens, const DocumentPlan& plan,
                                        std::int64_t batches, std::int64_t boundary) {
  std::vector<PlannedBatch> scored(plan.queue.begin(), plan.queue.begin() + batches);
  std::ranges::sort(scored, {}, &PlannedBatch::index);
  std::vector<std::uint16_t> collected;
  for (const PlannedBatch& batch : scored) {
    for (const int number : batch.documents) {
      if (boundary-- <= 0) return collected;
      const auto start = tokens.begin() + plan.document(number).start;
      collected.insert(collected.end(), start, start + plan.document(number).length);
    }
  }
  return collected;
}

namespace {

// Some 2,000 launches that wait for each other take about 14 ms: as many tokens at the record's 0.35 GFLOP
// per token and 400 TFLOP/s.
constexpr std::int64_t launch_tokens = 16384;
// Of a chunk that trains, in forward passes: forward, backward and update.
constexpr std::int64_t training_passes = 4;
constexpr std::int64_t fewest_compared_tokens = std::int64_t{1} << 22;

// Time of a batch on one device, in tokens of its windows.
std::int64_t predicted_cost(const DocumentPlan& plan, const PlannedBatch& batch,
                            std::int64_t context_tokens) {
  std::int64_t cost = 0;
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk)
    cost += launch_tokens + window_shape(plan, batch, chunk, context_tokens).tokens();
  return cost;
}

}  // namespace

std::vector<PlannedChunk> shuffled_chunks(const DocumentPlan& plan, std::int64_t context_tokens,
                                          const char* purpose) {
  const PhiloxStream order(0, purpose);
  std::vector<std::pair<std::uint32_t, std::size_t>> keys;
  std::vector<PlannedChunk> chunks, shuffled;
  for (std::int64_t queue = 0; queue < plan.batches(); ++queue) {
    const PlannedBatch& batch = plan.batch(queue);
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      const std::int64_t tokens = window_shape(plan, batch, chunk, context_tokens).tokens();
      keys.emplace_back(order.bits(chunks.size()), chunks.size());
      chunks.push_back({queue, chunk, tokens, chunk + 1 < batch.chunks ? training_passes * tokens : tokens});
    }
  }
  std::ranges::sort(keys);
  for (const auto& [key, at] : keys) shuffled.push_back(chunks[at]);
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
  std::vector<std::int64_t> free_at(static_cast<std::size_t>(lanes), 0), done_at;  // by lane, by batch
  std::int64_t scored = 0;  // documents of the stretches before
  for (std::int64_t next = 0; next < plan.batches();) {
    LanePlan::Stretch stretch{next, next, {}};
    if (result.stretches.size() < boundaries.size()) stretch.boundary = boundaries[result.stretches.size()];
    std::ranges::fill(free_at, *std::ranges::max_element(free_at));
    for (; next < plan.batches(); ++next) {
      const auto free = std::ranges::min_element(free_at);
      std::int64_t finished = 0;
      for (std::int64_t queue = stretch.first; queue < next; ++queue)
        finished += done_at[static_cast<std::size_t>(queue)] <= *free ? plan.batch(queue).size() : 0;
      if (stretch.boundary && finished > 0 && scored + finished >= *stretch.boundary) break;
      *free += predicted_cost(plan, plan.batch(next), context_tokens);
      done_at.push_back(*free);
      const std::int64_t lane = free - free_at.begin();
      result.begins.push_back(std::find(result.lanes.begin() + stretch.first, result.lanes.end(), lane) ==
                              result.lanes.end());
      result.lanes.push_back(lane);
    }
    for (; stretch.end < next; ++stretch.end) scored += plan.batch(stretch.end).size();
    result.stretches.push_back(stretch);
  }
  return result;
}

std::vector<std::int64_t> LanePlan::order() const {
  std::vector<std::int64_t> order;
  for (const Stretch& stretch : stretches) {
    for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) order.push_back(queue);
    std::stable_sort(order.begin() + stretch.first, order.end(),
                     [&](std::int64_t a, std::int64_t b) { return lane(a) < lane(b); });
  }
  return order;
}

}  // namespace mulligan
