#include "framework/ttt/adaptation_rule.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "framework/adapters/adapter_taps.h"

namespace mulligan {

AdaptationRule::AdaptationRule(const TttPlugin& plugin, const DocumentPlan& plan, std::int64_t full,
                               const std::vector<std::shared_ptr<const AdapterTensor>>& tensors)
    : plugin_(plugin), plan_(plan), tensors_(tensors) {
  std::vector<mlg_ttt_tensor> named;
  for (const auto& tensor : tensors_) {
    named.push_back({tap_kind_name(tensor->kind), tensor->group.c_str(),
                     static_cast<std::int32_t>(tensor->slot),
                     tensor->uniform ? MLG_START_UNIFORM : MLG_START_ZERO});
  }
  for (std::int64_t queue = 0; !named.empty() && queue < plan_.batches(); ++queue) {
    if (plan_.batch(queue).size() != full) continue;
    mlg_ttt_chunk begins{};
    begins.batch = queue;
    begins.chunk = -1;
    begins.chunks = plan_.batch(queue).chunks;
    begins.tensors = named.data();
    begins.tensor_count = std::ssize(named);
    AdapterSet::Inheritance& inherits = inheritances_[queue];
    inherits.keep.assign(named.size(), 0.0);
    mlg_ttt_step step{1, 1.0, nullptr, inherits.keep.data(), 0};
    plugin_.plan(begins, step);
    inherits.keep_state = step.keep_state != 0;
  }
}

const AdapterSet::Inheritance* AdaptationRule::inheritance(std::int64_t queue) const {
  const auto found = inheritances_.find(queue);
  return found == inheritances_.end() ? nullptr : &found->second;
}

bool AdaptationRule::draws(std::int64_t queue) const {
  const AdapterSet::Inheritance* inherits = inheritance(queue);
  for (std::size_t i = 0; inherits && i < tensors_.size(); ++i) {
    if (tensors_[i]->uniform && inherits->keep[i] == 0) return true;
  }
  return !inherits;
}

std::int64_t AdaptationRule::draws_before(std::int64_t queue) const {
  std::int64_t count = 0;
  for (std::int64_t before = 0; before < queue; ++before) count += draws(before) ? 1 : 0;
  return count;
}

// FNV-1a over the bits.
void AdaptationRule::note(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (const std::uint64_t half : {bits & 0xffffffffu, bits >> 32})
    digest_ = (digest_ ^ half) * 0x100000001b3u;
}

void AdaptationRule::begin_batch(std::int64_t queue) {
  queue_ = queue;
  losses_.assign(plan_.batch(queue).documents.size(), {});
  const AdapterSet::Inheritance* inherits = inheritance(queue);
  if (!inherits || !inherits->keep_state) updates_[std::ssize(losses_)] = 0;
  if (!inherits) return;
  for (const double keep : inherits->keep) note(keep);
  note(inherits->keep_state ? 1 : 0);
}

ChunkChoice AdaptationRule::choose(std::int64_t chunk, const ScoreBook& book) {
  const PlannedBatch& batch = plan_.batch(queue_);
  std::vector<mlg_ttt_document> booked;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const int number = batch.documents[i];
    while (std::ssize(losses_[i]) <= chunk) {
      const TargetRange range = plan_.range(batch, number, std::ssize(losses_[i]));
      if (range.count() == 0) break;
      losses_[i].push_back(book.sums(range).mean_loss_nats());
    }
    booked.push_back(
        {losses_[i].data(), std::ssize(losses_[i]), plan_.range(batch, number, chunk + 1).count() > 0});
  }
  ChunkChoice choice;
  choice.weights.assign(losses_.size(), 1.0);
  std::int64_t& updates = updates_[batch.size()];
  const mlg_ttt_chunk asked{queue_, chunk, batch.chunks, updates, batch.size(), booked.data(), nullptr, 0};
  mlg_ttt_step step{1, 1.0, choice.weights.data(), nullptr, 0};
  plugin_.plan(asked, step);
  choice.steps = step.gradient_steps;
  choice.lr_factor = step.lr_factor;
  updates += choice.steps;
  note(static_cast<double>(choice.steps));
  note(choice.lr_factor);
  for (const double weight : choice.weights) note(weight);
  return choice;
}

std::string AdaptationRule::text(const ChunkChoice& choice, const std::vector<std::size_t>& shown) const {
  nlohmann::ordered_json json = {{"steps", choice.steps}, {"lr_factor", choice.lr_factor}};
  std::vector<double> weights;
  for (const std::size_t document : shown) weights.push_back(choice.weights[document]);
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
