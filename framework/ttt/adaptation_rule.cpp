#include "framework/ttt/adaptation_rule.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "framework/adapters/adapter_taps.h"
#include "framework/data/documents.h"

namespace mulligan {

AdaptationRule::AdaptationRule(const TttPlugin& plugin, const DocumentPlan& plan, std::int64_t full,
                               const std::vector<std::shared_ptr<const AdapterTensor>>& tensors)
    : plugin_(plugin), plan_(plan), full_(full), tensors_(tensors) {
  if (tensors_.empty()) return;
  std::vector<mlg_ttt_tensor> named;
  for (const auto& tensor : tensors_) {
    named.push_back({tap_kind_name(tensor->kind), tensor->group.c_str(),
                     static_cast<std::int32_t>(tensor->slot),
                     tensor->uniform ? MLG_START_UNIFORM : MLG_START_ZERO});
  }
  for (std::int64_t queue = 0; queue < static_cast<std::int64_t>(plan_.queue.size()); ++queue) {
    const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
    if (static_cast<std::int64_t>(batch.batch.documents.size()) != full_) continue;
    mlg_ttt_chunk begins{};
    begins.batch = queue;
    begins.chunk = -1;
    begins.chunks = batch.chunks;
    begins.tensors = named.data();
    begins.tensor_count = static_cast<std::int64_t>(named.size());
    AdapterSet::Inheritance& inherits = inheritances_[queue];
    inherits.keep.assign(named.size(), 0.0);
    mlg_ttt_step step{1, 1.0, nullptr, inherits.keep.data(), 0};
    plugin_.plan(begins, step);
    inherits.keep_state = step.keep_state != 0;
  }
}

bool AdaptationRule::draws(std::int64_t queue) const {
  const auto inherits = inheritances_.find(queue);
  if (inherits == inheritances_.end()) return true;  // a batch of another size has adapters of its own
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i]->uniform && inherits->second.keep[i] == 0) return true;
  }
  return false;
}

// FNV-1a over the bits.
void AdaptationRule::note(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (const std::uint64_t half : {bits & 0xffffffffu, bits >> 32})
    digest_ = (digest_ ^ half) * 0x100000001b3u;
}

void AdaptationRule::begin_batch(std::int64_t queue) {
  queue_ = queue;
  losses_.assign(documents(queue).size(), {});
  const auto inherits = inheritances_.find(queue);
  if (inherits == inheritances_.end() || !inherits->second.keep_state)
    updates_[static_cast<std::int64_t>(losses_.size())] = 0;
  if (inherits == inheritances_.end()) return;
  for (const double keep : inherits->second.keep) note(keep);
  note(inherits->second.keep_state ? 1 : 0);
}

ChunkChoice AdaptationRule::choose(std::int64_t chunk, const ScoreBook& book) {
  const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue_)];
  std::vector<mlg_ttt_document> booked;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const int number = batch.batch.documents[i];
    const std::int64_t targets = plan_.targets(number), chunks = chunk_count(targets, batch.chunk_tokens);
    for (auto next = static_cast<std::int64_t>(losses_[i].size()); next <= std::min(chunk, chunks - 1);
         ++next) {
      const std::int64_t first = plan_.document(number).start + 1 + next * batch.chunk_tokens;
      const std::int64_t count = std::min(batch.chunk_tokens, targets - next * batch.chunk_tokens);
      losses_[i].push_back(book.range(first, first + count).mean_loss_nats());
    }
    booked.push_back({losses_[i].data(), static_cast<std::int64_t>(losses_[i].size()), chunk + 1 < chunks});
  }
  const auto size = static_cast<std::int64_t>(losses_.size());
  ChunkChoice choice;
  choice.weights.assign(losses_.size(), 1.0);
  const mlg_ttt_chunk asked{queue_, chunk, batch.chunks, updates_[size], size, booked.data(), nullptr, 0};
  mlg_ttt_step step{1, 1.0, choice.weights.data(), nullptr, 0};
  plugin_.plan(asked, step);
  choice.steps = step.gradient_steps;
  choice.lr_factor = step.lr_factor;
  updates_[size] += choice.steps;
  note(static_cast<double>(choice.steps));
  note(choice.lr_factor);
  for (const double weight : choice.weights) note(weight);
  return choice;
}

std::int64_t AdaptationRule::updates(std::int64_t documents) const {
  const auto found = updates_.find(documents);
  return found == updates_.end() ? 0 : found->second;
}

std::string AdaptationRule::text(const ChunkChoice& choice, const std::vector<std::size_t>& shown) const {
  nlohmann::ordered_json json = {{"steps", choice.steps}, {"lr_factor", choice.lr_factor}};
  std::vector<double> weights;
  for (const std::size_t document : shown) weights.push_back(choice.weight(document));
  if (std::ranges::any_of(weights, [](double weight) { return weight != 1; })) json["weights"] = weights;
  return json.dump();
}

// By the plugin's names; where adapters of one name differ, tensor by tensor.
std::string AdaptationRule::text(const AdapterSet::Inheritance& inheritance) const {
  nlohmann::ordered_json by_group = nlohmann::ordered_json::object(), by_tensor = by_group;
  bool differ = false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const double keep = inheritance.keep[i];
    by_tensor[tensors_[i]->name] = keep;
    if (!by_group.contains(tensors_[i]->group)) by_group[tensors_[i]->group] = keep;
    differ = differ || by_group[tensors_[i]->group] != keep;
  }
  return nlohmann::ordered_json{{"keep", differ ? by_tensor : by_group},
                                {"keep_state", inheritance.keep_state}}
      .dump();
}

}  // namespace mulligan
