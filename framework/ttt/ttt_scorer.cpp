#include "framework/ttt/ttt_scorer.h"

#include <algorithm>
#include <span>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/run/device_memory.h"
#include "framework/run/parameter_store.h"
#include "framework/ttt/causality.h"

namespace mulligan {
namespace {

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
      lanes_(plan_lanes(
          plan_, setup.config.context_tokens,
          setup.base ? phase_boundaries(setup.config, plan_.chosen_documents) : std::vector<std::int64_t>(),
          setup.lanes)),
      own_(own_order()),
      book_(data.tokens, data.bytes),
      arena_(model.store.backend()),
      suffixes_(setup.config.check, model.store.backend().repeats(), plan_, setup.config.context_tokens,
                model.config.vocabulary) {
  require_offers(setup);
  const std::int64_t context_tokens = setup.config.context_tokens;
  const AdapterSet::Setup of_set{setup.adapters, setup.optimizer, setup.draws, context_tokens,
                                 setup.transform ? setup.transform->biases() : 0};
  std::map<std::int64_t, std::set<WindowShape>> shapes;  // by documents per batch
  for (const std::int64_t queue : own_) {
    const PlannedBatch& batch = plan_.batch(queue);
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk)
      shapes[batch.size()].insert(window_shape(plan_, batch, chunk, context_tokens));
  }
  for (const auto& [documents, of_size] : shapes) {
    auto& set = sets_[documents];
    set = std::make_unique<AdapterSet>(model, of_set, documents, of_size);
    for (Program* program : set->programs()) programs_.push_back(program);
  }
  if (setup.base && setup.config.prefix_documents > 0) {
    base_ = std::make_unique<BaseTraining>(model, *setup.base, *setup.base_optimizer, setup.row_tokens,
                                           data.bos_id);
    for (Program* program : base_->programs()) programs_.push_back(program);
  }
  prepare_exchange();
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
  return lanes_.lane(queue) * world_size() / setup_.lanes == rank();
}

std::vector<std::int64_t> TttScorer::own_order() const {
  std::vector<std::int64_t> own = lanes_.order();
  std::erase_if(own, [&](std::int64_t queue) { return !is_own(queue); });
  return own;
}

TttReport TttScorer::run(const TttStanding* from) {
  prepare_transform();
  if (from) restore(*from);
  const std::vector<std::int64_t>& done = now_.done;
  for (; stretch_ < lanes_.stretches.size(); ++stretch_) {
    const LanePlan::Stretch& stretch = lanes_.stretches[stretch_];
    try {
      while (done.size() < own_.size() && own_[done.size()] < stretch.end) score_batch(own_[done.size()]);
    } catch (const InvalidRun& reason) {
      if (world_size() == 1) throw;
      invalid_reason_ = reason.what();  // the meeting reports it
    }
    meet(stretch);
  }
  report_run();
  return now_.report;
}

void TttScorer::score_batch(std::int64_t queue) {
  if (!now_.done.empty() && at_boundary_) at_boundary_();
  if (lanes_.begins_lane(queue)) begin_lane(queue);
  if (feed_) feed_->enter_lane(lanes_.lane(queue));
  const auto start = std::chrono::steady_clock::now();
  AdapterSet& set = begin_batch(queue);
  for (std::int64_t chunk = 0; chunk < plan_.batch(queue).chunks; ++chunk) {
    if (at_chunk_) at_chunk_();
    Turn turn = make_turn(queue, chunk, set);
    take_turn(turn);
  }
  report_batch(queue, set, seconds_since(start));
  now_.done.push_back(queue);
}

void TttScorer::take_turn(Turn& turn) {
  score(turn);
  book(turn);
  if (!turn.trains) return;
  plan(turn);
  if (turn.choice.steps == 0) return;
  reveal(turn);
  update(turn);
}

// New adapters, the same for all lanes, which the batches of full size inherit from here on.
void TttScorer::begin_lane(std::int64_t queue) {
  const auto set = sets_.find(setup_.config.batch_documents);
  if (set == sets_.end() || now_.report.fell_back) return;
  rule_->begin_lane();
  set->second->create(draws_.stretches[stretch_]);
  tell({TttEventKind::create, queue, -1, -1, {}, {}, set->second.get()});
}

// A batch of another size has adapters of its own.
AdapterSet& TttScorer::begin_batch(std::int64_t queue) {
  const PlannedBatch& batch = plan_.batch(queue);
  AdapterSet& set = adapters(batch.size());
  if (now_.report.fell_back) {
    set.clear();
    return set;
  }
  rule_->begin_batch(queue);
  TttEvent event{TttEventKind::create, queue, batch.index, -1, batch.documents, {}, &set};
  const std::int64_t draw = draws_.batches[static_cast<std::size_t>(queue)];
  if (const AdapterSet::Inheritance* inherits = rule_->inheritance(queue)) {
    set.reset(draw, *inherits);
    event.kind = TttEventKind::reset;
    event.chosen = rule_->text(*inherits);
  } else {
    set.create(draw);
  }
  tell(std::move(event));
  return set;
}

// What another process would need to go on between two batches: the adapters that a later batch of the lane inherits,
// and the base model once it was trained.
std::vector<std::string> TttScorer::standing_tensors() const {
  std::vector<std::string> names;
  std::size_t next = now_.done.size();
  for (; !now_.report.fell_back && next < own_.size() && !lanes_.begins_lane(own_[next]); ++next) {
    const AdapterSet::Inheritance* inherits = rule_->inheritance(own_[next]);
    if (!inherits) continue;
    names = sets_.at(setup_.config.batch_documents)->inherited(*inherits);
    break;
  }
  if (!now_.report.phases.empty()) {
    for (const ParameterLayout& layout : model_.layouts) names.push_back(master_name(layout.spec.name));
  }
  return names;
}

TttStanding TttScorer::standing() const {
  TttStanding standing = now_;
  standing.losses = book_.losses();
  standing.choices = rule_->digest();
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
  now_.done = from.done;
  now_.report = from.report;
  now_.pending = from.pending;
  plain_book_ = from.plain_losses;
  for (const std::int64_t queue : from.done) replay(queue, from);
  if (rule_->digest() != from.choices) {
    throw data_error(
        "[ttt.adapters]: {} now chooses otherwise for documents that were scored before the interruption; start "
        "without --resume, and let the plugin's plan() depend on its arguments alone.",
        setup_.adapters.plugin().description());
  }
  while (own_[from.done.size()] >= lanes_.stretches[stretch_].end) ++stretch_;
  const auto reusable = sets_.find(setup_.config.batch_documents);
  if (reusable != sets_.end()) reusable->second->continue_after(rule_->updates(reusable->first));
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
  if (!from.report.phases.empty()) refresh_copies(model_.store, model_.layouts);
}

// What an interrupted run told the book, the score transform and the rule of a batch that is done, in the same order.
void TttScorer::replay(std::int64_t queue, const TttStanding& from) {
  const PlannedBatch& batch = plan_.batch(queue);
  const auto pending = from.pending.find(queue);
  const bool adapted =
      (pending != from.pending.end() ? pending->second
                                     : from.report.batches.at(static_cast<std::size_t>(queue)))
          .adapted;
  if (feed_) feed_->enter_lane(lanes_.lane(queue));
  if (adapted) {
    if (lanes_.begins_lane(queue)) rule_->begin_lane();
    rule_->begin_batch(queue);
  }
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
    if (feed_) feed_->propose(batch, chunk, [](auto&&...) {});
    for (const int number : batch.documents) {
      const auto [first, last] = plan_.range(batch, number, chunk);
      for (std::int64_t target = first; target < last; ++target)
        book_.enter(target, from.losses[static_cast<std::size_t>(target)]);
    }
    if (adapted && chunk + 1 < batch.chunks) rule_->choose(chunk, book_);
  }
}

}  // namespace mulligan
