#include "framework/ttt/ttt_scorer.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/run/device_memory.h"
#include "framework/run/parameter_store.h"
#include "framework/ttt/causality.h"

namespace mulligan {
namespace {

std::vector<std::int64_t> boundaries_of(const TttSetup& setup, const DocumentPlan& plan) {
  if (!setup.base) return {};
  return phase_boundaries(setup.config, plan.chosen_documents);
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

TttScorer::TttScorer(const BaseModel& model, const TttSetup& setup, const TttData& data,
                     TttListener* listener)
    : model_(model),
      setup_(setup),
      data_(data),
      listener_(listener),
      plan_(plan_documents(data.tokens, data.bos_id, setup.config)),
      lanes_(plan_lanes(plan_, setup.config.context_tokens, boundaries_of(setup, plan_), setup.lanes)),
      own_(own_order()),
      book_(data.tokens, data.bytes),
      arena_(model.store.backend()),
      suffixes_(setup.config.check, model.store.backend().repeats(), plan_, setup.config.context_tokens,
                model.config.vocabulary) {
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
  sets_ = make_adapter_sets(model, adapters, shapes, programs_);
  if (setup.base && setup.config.prefix_documents > 0) {
    base_ = std::make_unique<BaseTraining>(model, *setup.base, *setup.base_optimizer, setup.row_tokens,
                                           data.bos_id);
    for (Program* program : base_->programs()) programs_.push_back(program);
  }
  require_memory(memory_of(model.store, programs_), model.store.backend(), "test-time training",
                 "lower ttt.batch_documents or ttt.context_tokens");
  arena_.bind(programs_, model.store);
  upload_window_rope(model, context_tokens);
  for (const auto& [documents, set] : sets_) probe_causality(*set, model, setup.adapters);
  rule_ = std::make_unique<AdaptationRule>(
      setup.adapters, plan_, setup.config.batch_documents,
      sets_.empty() ? std::vector<std::shared_ptr<const AdapterTensor>>() : sets_.begin()->second->tensors());
  draws_ = number_draws(lanes_, [&](std::int64_t queue) { return rule_->draws(queue); });
}

// Lanes side by side, so that those of all ranks are in order.
bool TttScorer::is_own(std::int64_t queue) const {
  return lanes_.lanes[static_cast<std::size_t>(queue)] * world_size() / setup_.lanes == rank();
}

std::vector<std::int64_t> TttScorer::own_order() const {
  std::vector<std::int64_t> own = lanes_.order();
  std::erase_if(own, [&](std::int64_t queue) { return !is_own(queue); });
  return own;
}

TttReport TttScorer::run(const TttStanding* from) {
  order_ = make_order();
  prepare_transform();
  if (from) restore(*from);
  for (; stretch_ < lanes_.stretches.size(); ++stretch_) {
    score_stretch(stretch_);
    meet(lanes_.stretches[stretch_]);
  }
  report_run();
  return report_;
}

// This rank's batches of it. Scores that must not be used end it: then nothing more is scored, and the next
// meeting reports it.
void TttScorer::score_stretch(std::size_t stretch) {
  const std::int64_t begin = lanes_.stretches[stretch].first, end = lanes_.stretches[stretch].end;
  const auto lane_of = [&](std::int64_t queue) { return lanes_.lanes[static_cast<std::size_t>(queue)]; };
  for (; done_ < own_.size() && own_[done_] < end; ++done_) {
    if (done_ > 0 && at_boundary_) at_boundary_();
    const std::int64_t queue = own_[done_];
    if (done_ == 0 || own_[done_ - 1] < begin || lane_of(own_[done_ - 1]) != lane_of(queue))
      begin_lane(stretch, queue);
    if (feed_) feed_->enter_lane(lane_of(queue));
    const auto start = std::chrono::steady_clock::now();
    AdapterSet& set = begin_batch(queue);
    try {
      score_batch(queue, set);
    } catch (const InvalidRun& reason) {
      if (world_size() == 1) throw;
      invalid_reason_ = reason.what();
      return;
    }
    report_batch({queue, !report_.fell_back, seconds_since(start), set.norms()});
  }
}

// New adapters, the same for all lanes, which the batches of full size inherit from here on.
void TttScorer::begin_lane(std::size_t stretch, std::int64_t queue) {
  const auto set = sets_.find(setup_.config.batch_documents);
  if (set == sets_.end() || report_.fell_back) return;
  rule_->begin_lane();
  set->second->create(draws_.stretches[stretch]);
  tell({TttEventKind::create, queue, -1, -1, {}, set->second.get()});
}

// A batch of another size has adapters of its own.
AdapterSet& TttScorer::begin_batch(std::int64_t queue) {
  const DocumentBatch& batch = plan_.queue[static_cast<std::size_t>(queue)].batch;
  const auto documents = static_cast<std::int64_t>(batch.documents.size());
  AdapterSet& set = adapters(documents);
  if (report_.fell_back) {
    set.clear();
    return set;
  }
  const std::int64_t draw = draws_.batches[static_cast<std::size_t>(queue)];
  const bool reusable = documents == setup_.config.batch_documents;
  rule_->begin_batch(queue);
  TttEvent event{TttEventKind::create, queue, batch.index, -1, batch.documents, &set};
  if (reusable) {
    set.reset(draw, rule_->inheritance(queue));
    event.kind = TttEventKind::reset;
    event.chosen = rule_->text(rule_->inheritance(queue));
  } else {
    set.create(draw);
  }
  tell(event);
  return set;
}

void TttScorer::score_batch(std::int64_t queue, AdapterSet& set) {
  const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
    if (at_chunk_) at_chunk_();
    Turn turn = make_turn(queue, chunk, set);
    take_turn(turn);
    order_->finish();
  }
}

// TttScorer between two batches: what it would need to go on in another process.

namespace {

// A sum that a state states is that of the losses in it.
void require_booked(double stated, double booked) {
  if (std::abs(booked - stated) <= 1e-6 * std::abs(booked)) return;
  throw data_error(
      "the saved state of test-time training states {} nats, but its losses are {}; start without --resume.",
      stated, booked);
}

}  // namespace

// Of the next batch that continues the adapters which now stand; null where none does.
const AdapterSet::Inheritance* TttScorer::next_inheritance() const {
  const auto lane_of = [&](std::int64_t queue) { return lanes_.lanes[static_cast<std::size_t>(queue)]; };
  if (done_ == 0 || report_.fell_back) return nullptr;
  const std::int64_t last = own_[done_ - 1];
  for (std::size_t next = done_; next < own_.size(); ++next) {
    const std::int64_t queue = own_[next];
    if (queue >= lanes_.stretches[stretch_].end || lane_of(queue) != lane_of(last)) return nullptr;
    const auto& documents = plan_.queue[static_cast<std::size_t>(queue)].batch.documents;
    if (static_cast<std::int64_t>(documents.size()) == setup_.config.batch_documents)
      return &rule_->inheritance(queue);
  }
  return nullptr;
}

// The rule's answers for what is done, which must be those of the run that is continued.
void TttScorer::plan_again(const TttStanding& from) {
  std::size_t stretch = 0;
  for (std::size_t i = 0; i < from.done.size(); ++i) {
    const std::int64_t queue = from.done[i];
    const auto place = static_cast<std::size_t>(queue);
    const bool adapted =
        place < report_.batches.size() ? report_.batches[place].adapted : pending_.at(queue).adapted;
    if (!adapted) continue;
    const std::size_t before = stretch;
    while (queue >= lanes_.stretches[stretch].end) ++stretch;
    const bool same_lane =
        i > 0 && lanes_.lanes[static_cast<std::size_t>(from.done[i - 1])] == lanes_.lanes[place];
    if (!same_lane || stretch != before) rule_->begin_lane();
    rule_->begin_batch(queue);
    const std::int64_t chunks = plan_.queue[place].chunks;
    for (std::int64_t chunk = 0; chunk + 1 < chunks; ++chunk) rule_->choose(chunk, book_);
  }
  if (rule_->digest() != from.choices) {
    throw data_error(
        "[ttt.adapters]: {} now chooses otherwise for documents that were scored before the interruption; start "
        "without --resume, and let the plugin's plan() depend on its arguments alone.",
        setup_.adapters.plugin().description());
  }
  const auto reusable = sets_.find(setup_.config.batch_documents);
  if (reusable != sets_.end()) reusable->second->continue_after(rule_->updates(reusable->first));
}

std::vector<std::string> TttScorer::standing_tensors() const {
  std::vector<std::string> names;
  const auto reusable = sets_.find(setup_.config.batch_documents);
  if (const AdapterSet::Inheritance* inherits = next_inheritance())
    names = reusable->second->inherited(*inherits);
  if (!report_.phases.empty()) {
    for (const ParameterLayout& layout : model_.layouts) names.push_back(master_name(layout.spec.name));
  }
  return names;
}

TttStanding TttScorer::standing() const {
  TttStanding standing;
  standing.done.assign(own_.begin(), own_.begin() + static_cast<std::ptrdiff_t>(done_));
  standing.report = report_;
  for (const auto& [queue, batch] : pending_) standing.pending.push_back(batch);
  standing.sums = book_.sums();
  standing.compared = compared_;
  standing.losses = book_.losses();
  standing.choices = rule_->digest();
  standing.untransformed = plain_;
  standing.plain_losses = plain_book_;
  for (const std::string& name : standing_tensors()) {
    std::vector<std::byte>& bytes = standing.tensors[name];
    bytes.resize(static_cast<std::size_t>(model_.store.type(name).bytes()));
    model_.store.download(name, bytes);
  }
  return standing;
}

void TttScorer::restore(const TttStanding& from) {
  if (from.done.size() >= own_.size() ||
      !std::ranges::equal(from.done, std::span(own_).first(from.done.size())) ||
      from.losses.size() != data_.tokens.size() || from.plain_losses.size() != plain_book_.size()) {
    throw data_error("the saved state of test-time training is of other documents; start without --resume.");
  }
  report_ = from.report;
  done_ = from.done.size();
  compared_ = from.compared;
  for (const TttPendingBatch& batch : from.pending) pending_[batch.queue] = batch;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const std::int64_t queue : from.done) {
    for (const int number : plan_.queue[static_cast<std::size_t>(queue)].batch.documents) {
      const std::int64_t first = plan_.document(number).start + 1;
      ranges.emplace_back(first, first + plan_.targets(number));
    }
  }
  book_.restore(from.losses, from.sums, ranges);
  double nats = 0, reported = 0;
  for (const auto& [first, last] : ranges) nats += book_.range(first, last).loss_nats;
  require_booked(from.sums.loss_nats, nats);
  for (const TttBatchReport& batch : report_.batches) {
    for (const int number : plan_.queue[static_cast<std::size_t>(batch.queue)].batch.documents) {
      const std::int64_t first = plan_.document(number).start + 1;
      reported += book_.range(first, first + plan_.targets(number)).loss_nats;
    }
    require_booked(batch.running.loss_nats, reported);
  }
  plain_ = from.untransformed;
  plain_book_ = from.plain_losses;
  for (const std::int64_t queue : from.done) replay_transform(queue);
  plan_again(from);
  // The stretches before the one under way are done as a whole.
  for (; own_[done_] >= lanes_.stretches[stretch_].end; ++stretch_) note_scored(lanes_.stretches[stretch_]);
  for (const std::string& name : standing_tensors()) {
    const auto saved = from.tensors.find(name);
    if (saved == from.tensors.end() ||
        static_cast<std::int64_t>(saved->second.size()) != model_.store.type(name).bytes()) {
      throw data_error(
          "the saved state of test-time training holds no tensor '{}' of this model; start without --resume.",
          name);
    }
    model_.store.upload(name, saved->second);
  }
  if (!report_.phases.empty()) refresh_copies(model_.store, model_.layouts);
}

}  // namespace mulligan
