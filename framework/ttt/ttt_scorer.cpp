#include "framework/ttt/ttt_scorer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numbers>
#include <span>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/run/device_memory.h"

namespace mulligan {

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
      own_(lanes_.order()),
      book_(data.tokens, data.bytes),
      arena_(model.store.backend()),
      suffixes_(setup.config.check, model.store.backend().repeats(), plan_, setup.config.context_tokens,
                model.config.vocabulary) {
  config_error_if(!setup.adapters.has_adapters(),
                  "[ttt.adapters]: {} has no adapters; name a plugin that has, such as doc_lora.",
                  setup.adapters.plugin().description());
  if (setup.base && !setup.base->has_base_update())
    throw config_error(
        "[ttt.base]: {} does not train the base model; name a plugin that does, such as global_sgd.",
        setup.base->plugin().description());
  std::erase_if(own_, [&](std::int64_t queue) { return !is_own(queue); });
  const std::int64_t context_tokens = setup.config.context_tokens;
  std::map<std::int64_t, std::set<WindowShape>> shapes;  // by documents per batch
  for (const std::int64_t queue : own_) {
    const PlannedBatch& batch = plan_.batch(queue);
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk)
      shapes[batch.size()].insert(window_shape(plan_, batch, chunk, context_tokens));
  }
  for (const auto& [documents, of_size] : shapes) {
    auto& set = sets_[documents];
    set = std::make_unique<AdapterSet>(model, setup, documents, of_size);
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
}

// Lanes side by side, so that those of all ranks are in order.
bool TttScorer::is_own(std::int64_t queue) const {
  return lanes_.lane(queue) * world_size() / setup_.lanes == rank();
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

// The real windows come last: the update follows from their activations.
void TttScorer::score(Turn& turn) {
  propose(turn);
  const std::vector<SuffixCheck::Pass> passes =
      suffixes_.passes(turn.queue, turn.chunk, turn.program.shape(), turn.windows, turn.tokens, turn.targets);
  std::vector<SuffixCheck::Scores> changed;
  for (const SuffixCheck::Pass& pass : passes)
    changed.push_back(forward(turn, pass.tokens, pass.targets, true));
  const SuffixCheck::Scores real = forward(turn, turn.tokens, turn.targets, !passes.empty());
  for (std::size_t number = 0; number < passes.size(); ++number)
    SuffixCheck::compare(turn.queue, turn.chunk, passes[number], real, changed[number]);
  apply_proposals(turn, real);
  tell(TttEventKind::score, turn, false);
}

void TttScorer::book(Turn& turn) {
  for (std::size_t slot = 0; slot < turn.ranges.size(); ++slot) {
    for (std::int64_t target = turn.ranges[slot].first; target < turn.ranges[slot].last; ++target) {
      const std::size_t score = turn.score_of(slot, target);
      book_.enter(target, turn.losses[score]);
      if (feed_) plain_book_[static_cast<std::size_t>(target)] = turn.plain_losses[score];
    }
  }
  tell(TttEventKind::book, turn, false);
}

void TttScorer::plan(Turn& turn) {
  turn.choice = rule_->choose(turn.chunk, book_);
  std::vector<std::size_t> shown;
  for (std::size_t slot = 0; slot < turn.more.size(); ++slot) {
    if (turn.more[slot]) shown.push_back(turn.finished() + slot);
  }
  tell(TttEventKind::plan, turn, true,
       setup_.config.audit.empty() ? std::string() : rule_->text(turn.choice, shown));
}

// The objective: over documents with a later chunk, the sum of the chunk's mean losses, weighed by the rule.
void TttScorer::reveal(Turn& turn) {
  std::vector<float> weights(turn.targets.size(), 0.0F);
  for (std::size_t slot = 0; slot < turn.more.size(); ++slot) {
    if (!turn.more[slot]) continue;
    const TargetRange& range = turn.ranges[slot];
    static_cast<void>(book_.sums(range));  // no token is revealed before its score is final
    const double weight = turn.choice.weights.empty() ? 1 : turn.choice.weights[turn.finished() + slot];
    std::fill_n(weights.begin() + static_cast<std::ptrdiff_t>(turn.score_of(slot, range.first)),
                range.count(), static_cast<float>(weight / static_cast<double>(range.count())));
  }
  turn.program.set_weights(weights);
  turn.revealed = true;
  tell(TttEventKind::reveal, turn, true);
}

void TttScorer::update(Turn& turn) {
  if (!turn.revealed) throw std::logic_error("a chunk is learnt before it is revealed");
  for (std::int64_t step = 0; step < turn.choice.steps; ++step) {
    if (step > 0) turn.program.forward();  // the first step's activations are those of the scoring
    turn.set.update(turn.program, setup_.lr * turn.choice.lr_factor);
    tell(TttEventKind::update, turn, true);
  }
}

// Counts the events at which adapters are drawn (PhiloxDraws) along the queue: every stretch, and every batch that draws.
// So the numbers depend on neither lanes nor ranks but for where the base model is trained.
std::int64_t TttScorer::draw_number(std::int64_t queue) const {
  return static_cast<std::int64_t>(stretch_) + rule_->draws_before(queue);
}

// New adapters, the same for all lanes, which the batches of full size inherit from here on.
void TttScorer::begin_lane(std::int64_t queue) {
  const auto set = sets_.find(setup_.config.batch_documents);
  if (set == sets_.end() || now_.report.fell_back) return;
  rule_->begin_lane();
  set->second->create(draw_number(lanes_.stretches[stretch_].first));
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
  const std::int64_t draw = draw_number(queue) + 1;
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

// Finished documents have no window, or one of zeros; positions beyond a short chunk score token 0 of their row, and
// these losses are not used.
TttScorer::Turn TttScorer::make_turn(std::int64_t queue, std::int64_t chunk, AdapterSet& set) {
  const PlannedBatch& batch = plan_.batch(queue);
  const WindowShape shape = window_shape(plan_, batch, chunk, setup_.config.context_tokens);
  const auto documents = std::span(batch.documents).last(static_cast<std::size_t>(shape.documents));
  Turn turn{.batch = batch,
            .queue = queue,
            .chunk = chunk,
            .set = set,
            .program = set.window(shape),
            .trains = chunk + 1 < batch.chunks && !now_.report.fell_back,
            .documents = documents};
  turn.tokens.assign(static_cast<std::size_t>(shape.tokens()), 0);
  turn.targets.assign(static_cast<std::size_t>(shape.positions()), 0);
  for (std::size_t slot = 0; slot < documents.size(); ++slot) {
    const int number = documents[slot];
    const TargetRange range = turn.ranges.emplace_back(plan_.range(batch, number, chunk));
    turn.more.push_back(plan_.range(batch, number, chunk + 1).count() > 0);
    ChunkWindow& window = turn.windows.emplace_back();
    const auto row = static_cast<std::ptrdiff_t>(slot) * shape.context;
    turn.positions.insert(turn.positions.end(), static_cast<std::size_t>(shape.scored),
                          static_cast<std::int32_t>(row));
    if (range.count() == 0) continue;
    window = chunk_window(plan_.targets(number), batch.chunk_tokens, shape.context, chunk);
    std::copy_n(data_.tokens.begin() + plan_.document(number).start + window.window_start,
                window.window_length, turn.tokens.begin() + row);
    for (std::int64_t target = range.first; target < range.last; ++target) {
      const std::size_t score = turn.score_of(slot, target);
      turn.positions[score] += static_cast<std::int32_t>(window.chunk_offset + target - range.first);
      turn.targets[score] = data_.tokens[static_cast<std::size_t>(target)];
    }
  }
  return turn;
}

SuffixCheck::Scores TttScorer::forward(const Turn& turn, std::span<const std::int32_t> tokens,
                                       std::span<const std::int32_t> targets, bool with_normalisers) {
  turn.program.set_inputs(tokens, turn.positions, targets);
  turn.program.forward();
  SuffixCheck::Scores scores{turn.program.losses(), {}, {}};
  if (with_normalisers) scores.normalisers = turn.program.normalisers();
  for (int number = 0; number < setup_.proposals(); ++number)
    scores.proposed.push_back(turn.program.proposed_losses(number));
  return scores;
}

void TttScorer::tell(TttEventKind kind, const Turn& turn, bool only_more, std::string chosen) {
  if (!listener_ && !buffers_events()) return;
  TttEvent event{kind, turn.queue, turn.batch.index, turn.chunk, {}, std::move(chosen), &turn.set};
  for (std::size_t slot = 0; slot < turn.ranges.size(); ++slot) {
    if (only_more ? turn.more[slot] : turn.ranges[slot].count() > 0)
      event.documents.push_back(turn.documents[slot]);
  }
  tell(std::move(event));
}

std::vector<float> TttScorer::score_without() {
  const auto compared = compared_chunks(plan_, setup_.config.context_tokens);
  std::vector<float> losses(data_.tokens.size(), 0.0F);
  for (const std::int64_t queue : own_) {
    AdapterSet& set = adapters(plan_.batch(queue).size());
    set.clear();
    for (std::int64_t chunk = 0; chunk < plan_.batch(queue).chunks; ++chunk) {
      if (!compared.contains({queue, chunk})) continue;
      if (at_chunk_) at_chunk_();
      const Turn turn = make_turn(queue, chunk, set);
      const std::vector<float> scores = forward(turn, turn.tokens, turn.targets, false).losses;
      for (std::size_t slot = 0; slot < turn.ranges.size(); ++slot) {
        const auto& [first, last] = turn.ranges[slot];
        for (std::int64_t target = first; target < last; ++target)
          losses[static_cast<std::size_t>(target)] = scores[turn.score_of(slot, target)];
      }
    }
  }
  merge(losses);
  std::vector<float> known(losses.size(), std::numeric_limits<float>::quiet_NaN());
  for (const auto& [queue, chunk] : compared) {
    for (const int number : plan_.batch(queue).documents) {
      const TargetRange range = plan_.range(plan_.batch(queue), number, chunk);
      std::copy_n(losses.begin() + range.first, range.count(), known.begin() + range.first);
    }
  }
  return known;
}

// Where all lanes and ranks meet: what was scored becomes known to all of them, is reported, and trains the base model.

void TttScorer::meet(const LanePlan::Stretch& stretch) {
  if (world_size() > 1) exchange(stretch);
  report_stretch(stretch);
  if (stretch.boundary && base_ && !now_.report.fell_back) train_base(stretch);
}

// All ranks but one have 0 for a token that was booked since the last meeting.
void TttScorer::merge_losses(const LanePlan::Stretch& stretch) {
  std::vector<float> losses = book_.losses(), plain = plain_book_;
  merge(losses);
  if (feed_) merge(plain);
  for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue) {
    if (is_own(queue)) continue;
    for (const auto& [first, last] : plan_.ranges(plan_.batch(queue))) {
      for (auto target = static_cast<std::size_t>(first); target < static_cast<std::size_t>(last); ++target) {
        book_.enter(static_cast<std::int64_t>(target), losses[target]);
        if (feed_) plain_book_[target] = plain[target];
      }
    }
  }
}

// One lane watches for a collapse batch by batch.
void TttScorer::report_batch(std::int64_t queue, AdapterSet& set, double seconds) {
  const PlannedBatch& batch = plan_.batch(queue);
  TttBatchReport& report = now_.pending[queue];
  report.queue = queue;
  report.batch = batch.index;
  report.documents = batch.size();
  report.longest_tokens = plan_.targets(batch.documents.back());
  report.adapted = !now_.report.fell_back;
  report.seconds = seconds;
  report.adapters = set.norms();
  if (world_size() > 1) return;
  report_batches();
  if (setup_.lanes == 1) watch_for_collapse(now_.report.batches.back());
}

// Several lanes decide where they meet, so that their speeds do not matter.
void TttScorer::report_stretch(const LanePlan::Stretch& stretch) {
  report_batches();
  for (std::int64_t queue = stretch.first; setup_.lanes > 1 && queue < stretch.end; ++queue)
    watch_for_collapse(now_.report.batches.at(static_cast<std::size_t>(queue)));
}

void TttScorer::report_run() {
  TttReport& report = now_.report;
  report.checks = suffixes_.summary();
  report.lanes = setup_.lanes;
  report.ranks = world_size();
  if (!report.batches.empty()) report.sums = report.batches.back().running;
  report.documents = plan_.chosen_documents;
  std::map<int, TttLengthBin> bins;
  for (const PlannedBatch& batch : plan_.queue) {
    for (const TargetRange& range : plan_.ranges(batch)) {
      const int power = std::bit_width(static_cast<std::uint64_t>(range.count())) - 1;
      TttLengthBin& bin = bins[power];
      bin.shortest_tokens = std::int64_t{1} << power;
      bin.longest_tokens = 2 * bin.shortest_tokens - 1;
      ++bin.documents;
      bin.score += book_.sums(range);
      bin.compared += book_.compare(data_.without, range);
    }
  }
  for (const auto& [power, bin] : bins) report.bins.push_back(bin);
}

// What is scored, as far as every batch before it is.
void TttScorer::report_batches() {
  TttReport& all = now_.report;
  while (true) {
    auto next = now_.pending.extract(std::ssize(all.batches));
    if (next.empty()) return;
    TttBatchReport& report = next.mapped();
    for (const TargetRange& range : plan_.ranges(plan_.batch(report.queue))) {
      report.score += book_.sums(range);
      if (feed_) all.untransformed += book_.sums_of(plain_book_, range);
      all.compared += book_.compare(data_.without, range);
    }
    if (!all.batches.empty()) report.running = all.batches.back().running;
    report.running += report.score;
    report.compared = all.compared;
    all.batches.push_back(std::move(report));
    if (listener_) listener_->on_batch(all.batches.back());
  }
}

void TttScorer::watch_for_collapse(const TttBatchReport& batch) {
  const auto& [with, without] = batch.compared;
  const OnCollapse reaction = setup_.config.on_collapse;
  if (reaction == OnCollapse::off || without.tokens == 0 || now_.report.collapsed_at >= 0) return;
  const auto units = static_cast<double>(with.bytes > 0 ? with.bytes : with.tokens);
  const double excess = (with.loss_nats - without.loss_nats) / std::numbers::ln2 / units;
  if (excess <= setup_.config.collapse_margin) return;
  now_.report.collapsed_at = batch.queue;
  now_.report.fell_back = reaction == OnCollapse::fallback;
  if (rank() > 0) return;  // all do this alike; the first tells it
  tell({TttEventKind::collapse, batch.queue, batch.batch, -1, {}, {}});
  if (now_.report.fell_back) tell({TttEventKind::fallback, batch.queue, batch.batch, -1, {}, {}});
}

void TttScorer::train_base(const LanePlan::Stretch& stretch) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::uint16_t> tokens = phase_tokens(data_.tokens, plan_, stretch.end, *stretch.boundary);
  std::int64_t scored = 0;
  for (std::int64_t queue = 0; queue < stretch.end; ++queue) scored += plan_.batch(queue).size();
  TttPhaseReport phase;
  phase.phase = std::ssize(now_.report.phases) + 1;
  phase.documents = std::min(*stretch.boundary, scored);
  phase.tokens = std::ssize(tokens);
  phase.steps = base_->run(tokens);
  phase.seconds = seconds_since(start);
  now_.report.phases.push_back(phase);
  if (rank() == 0)
    tell({TttEventKind::phase, stretch.end - 1, -1, -1, {}, {}, nullptr, &now_.report.phases.back()});
}

// What a rank other than the first has seen is sent to the first at the next meeting, if it is logged.
void TttScorer::tell(TttEvent event) {
  if (listener_) listener_->on_event(event);
  if (buffers_events()) buffered_events_.push_back(std::move(event));
}

}  // namespace mulligan
