#include "framework/ttt/ttt_run.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "framework/core/error.h"
#include "framework/core/seconds_since.h"
#include "framework/ttt/causality_probe.h"

namespace mulligan {
namespace {

// Chunks of these batches.
std::int64_t turns_of(const DocumentPlan& plan, const std::vector<std::int64_t>& batches) {
  std::int64_t turns = 0;
  for (const std::int64_t queue : batches) turns += plan.queue[static_cast<std::size_t>(queue)].chunks;
  return turns;
}

std::vector<std::int64_t> boundaries_of(const TttSetup& setup, const DocumentPlan& plan) {
  if (!setup.base) return {};
  return phase_boundaries(setup.config, plan.chosen_documents);
}

// One for each rank, all known once the first is.
std::uint64_t seed_of(const TttSetup& setup) {
  const std::uint64_t seed = unpredictable_seed();
  if (!setup.communicator) return seed;
  const std::string first = setup.communicator->group().broadcast(std::to_string(seed));
  return std::stoull(first) + static_cast<std::uint64_t>(setup.communicator->rank());
}

void require_offers(const TttSetup& setup) {
  if (!setup.adapters.has_adapters()) {
    throw config_error("[ttt.adapters]: {} has no adapters; name a plugin that has, such as doc_lora.",
                       setup.adapters.plugin().description());
  }
  if (setup.base && !setup.base->has_base_update()) {
    throw config_error(
        "[ttt.base]: {} does not train the base model; name a plugin that does, such as global_sgd.",
        setup.base->plugin().description());
  }
}

}  // namespace

TttRun::TttRun(const BaseModel& model, const TttSetup& setup, const TttData& data, TttListener* listener)
    : model_(model),
      setup_(setup),
      data_(data),
      listener_(listener),
      plan_(plan_documents(data.tokens, data.bos_id, setup.config)),
      lanes_(plan_lanes(plan_, setup.config.context_tokens, boundaries_of(setup, plan_), setup.lanes)),
      own_(own_order()),
      book_(data.tokens, data.bytes),
      arena_(model.store.backend()),
      suffixes_(turns_of(plan_, own_), model.config.vocabulary, seed_of(setup), setup.full_audit) {
  require_offers(setup);
  const std::int64_t context_tokens = setup.config.context_tokens;
  WindowShapes shapes;
  for (const std::int64_t queue : own_) {
    const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
    const auto documents = static_cast<std::int64_t>(batch.batch.documents.size());
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      shapes[documents].insert({window_documents(plan_, batch, chunk),
                                window_context(batch, chunk, context_tokens), batch.chunk_tokens});
    }
  }
  const AdapterSet::Setup adapters{setup.adapters, setup.optimizer, setup.draws, context_tokens,
                                   setup.transform ? setup.transform->biases() : 0};
  if (setup.blind) setup.blind->begin(model, shapes);
  sets_ = make_adapter_sets(model, adapters, shapes, programs_);
  for (const auto& [documents, set] : sets_) {
    for (const WindowProgram* window : set->windows())
      plugin_kernels_ = plugin_kernels_ || window->unknown_kernels();
  }
  if (plugin_kernels_ && setup.full_for_kernels)
    suffixes_ = SuffixCheck(turns_of(plan_, own_), model.config.vocabulary, suffixes_.seed(), true);
  if (setup.base && setup.config.prefix_documents > 0) {
    base_ = std::make_unique<BaseTraining>(model, *setup.base, *setup.base_optimizer, setup.row_tokens,
                                           data.bos_id);
    for (Program* program : base_->programs()) programs_.push_back(program);
  }
  arena_.bind(programs_, model.store);
  upload_window_rope(model, context_tokens);
  const bool resets_draw = !sets_.empty() && sets_.begin()->second->reset_draws();
  draws_ = number_draws(plan_, lanes_, setup.config.batch_documents, resets_draw);
}

// Lanes side by side, so that those of all ranks are in order.
bool TttRun::is_own(std::int64_t queue) const {
  return lanes_.lanes[static_cast<std::size_t>(queue)] * world_size() / setup_.lanes == rank();
}

std::vector<std::int64_t> TttRun::own_order() const {
  std::vector<std::int64_t> own = lanes_.order();
  std::erase_if(own, [&](std::int64_t queue) { return !is_own(queue); });
  return own;
}

TttReport TttRun::run(const TttStanding* from) {
  order_ = make_order();
  for (const auto& [documents, set] : sets_) probe_causality(*set, model_, setup_.adapters);
  prepare_transform();
  if (from) restore(*from);
  if (setup_.blind && from) setup_.blind->send_weights(model_, suffixes_);
  for (; stretch_ < lanes_.stretches.size(); ++stretch_) {
    score_stretch(stretch_);
    meet(lanes_.stretches[stretch_]);
  }
  report_.lanes = setup_.lanes;
  report_.ranks = world_size();
  report_.sums = report_.batches.empty() ? ScoreSums{} : report_.batches.back().running;
  report_.reference = reference_;
  report_.untransformed = plain_;
  report_.documents = plan_.chosen_documents;
  report_.bins = length_bins();
  return report_;
}

// This rank's batches of it. Scores that must not be used end it: then nothing more is scored, and the next
// meeting says so.
void TttRun::score_stretch(std::size_t stretch) {
  const std::int64_t begin = lanes_.stretches[stretch].first, end = lanes_.stretches[stretch].end;
  const auto lane_of = [&](std::int64_t queue) { return lanes_.lanes[static_cast<std::size_t>(queue)]; };
  for (; done_ < own_.size() && own_[done_] < end; ++done_) {
    if (done_ > 0 && at_boundary_) at_boundary_();
    const std::int64_t queue = own_[done_];
    if (done_ == 0 || own_[done_ - 1] < begin || lane_of(own_[done_ - 1]) != lane_of(queue))
      begin_lane(stretch, queue);
    if (feed_) feed_->enter_lane(lane_of(queue));
    const auto start = KernelClock::now();
    AdapterSet& set = begin_batch(queue);
    try {
      score_batch(queue, set);
      // The last of a stretch: what is still being checked counts before all meet.
      const bool last = done_ + 1 == own_.size();
      if (setup_.blind && (last || own_[done_ + 1] >= end))
        setup_.blind->settle(suffixes_, last ? BlindChecker::Until::end : BlindChecker::Until::turns);
    } catch (const VoidRun& reason) {
      if (world_size() == 1) throw;
      void_reason_ = reason.what();
      return;
    }
    pending_[queue] = {queue, !report_.fell_back, seconds_since(start), set.norms()};
    if (world_size() > 1) continue;
    const std::size_t reported = report_.batches.size();
    report_batches();
    if (setup_.lanes == 1) watch_for_collapse(report_.batches.at(reported));
  }
}

// New adapters, the same for all lanes, which the batches of full size inherit from here on.
void TttRun::begin_lane(std::size_t stretch, std::int64_t queue) {
  const auto set = sets_.find(setup_.config.batch_documents);
  if (set == sets_.end() || report_.fell_back) return;
  set->second->create(draws_.stretches[stretch]);
  tell({TttEventKind::create, queue, -1, -1, {}, set->second.get()});
}

// A batch of another size has adapters of its own.
AdapterSet& TttRun::begin_batch(std::int64_t queue) {
  const DocumentBatch& batch = plan_.queue[static_cast<std::size_t>(queue)].batch;
  const auto documents = static_cast<std::int64_t>(batch.documents.size());
  AdapterSet& set = adapters(documents);
  if (report_.fell_back) {
    set.clear();
    return set;
  }
  const std::int64_t draw = draws_.batches[static_cast<std::size_t>(queue)];
  const bool reusable = documents == setup_.config.batch_documents;
  if (reusable) {
    set.reset(draw);
  } else {
    set.create(draw);
  }
  tell(
      {reusable ? TttEventKind::reset : TttEventKind::create, queue, batch.index, -1, batch.documents, &set});
  return set;
}

void TttRun::score_batch(std::int64_t queue, AdapterSet& set) {
  const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
    if (at_chunk_) at_chunk_();
    Turn turn = make_turn(queue, chunk, set);
    take_turn(turn);
    order_->finish();
  }
}

}  // namespace mulligan
