#include "framework/ttt/ttt_run.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <numbers>
#include <set>

#include "framework/core/error.h"
#include "framework/core/seconds_since.h"
#include "framework/ttt/causality_probe.h"

namespace mulligan {
namespace {

// Chunks of all batches.
std::int64_t turns_of(const DocumentPlan& plan) {
  std::int64_t turns = 0;
  for (const PlannedBatch& batch : plan.queue) turns += batch.chunks;
  return turns;
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

const char* event_name(TttEvent::Kind kind) {
  static constexpr const char* names[] = {"create", "reset", "score",    "book",    "reveal",
                                          "update", "phase", "collapse", "fallback"};
  return names[static_cast<int>(kind)];
}

TttRun::TttRun(const BaseModel& model, const TttSetup& setup, const TttData& data, TttListener* listener)
    : model_(model),
      setup_(setup),
      data_(data),
      listener_(listener),
      plan_(plan_documents(data.tokens, data.bos_id, setup.config)),
      book_(data.tokens, data.bytes),
      arena_(model.store.backend()),
      suffixes_(turns_of(plan_), model.config.vocabulary, unpredictable_seed()) {
  require_offers(setup);
  const std::int64_t context_tokens = setup.config.context_tokens;
  std::map<std::int64_t, std::set<WindowShape>> shapes;  // by documents
  for (const PlannedBatch& batch : plan_.queue) {
    const auto documents = static_cast<std::int64_t>(batch.batch.documents.size());
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      shapes[documents].insert({window_documents(plan_, batch, chunk),
                                window_context(batch, chunk, context_tokens), batch.chunk_tokens});
    }
  }
  const AdapterSet::Setup adapters{setup.adapters, setup.optimizer, setup.draws, context_tokens};
  for (const auto& [documents, of_size] : shapes) {
    auto& set = sets_[documents];
    set = std::make_unique<AdapterSet>(model, adapters, documents, of_size);
    for (Program* program : set->programs()) programs_.push_back(program);
  }
  if (setup.base && setup.config.prefix_documents > 0) {
    base_ = std::make_unique<BaseTraining>(model, *setup.base, *setup.base_optimizer, setup.row_tokens,
                                           data.bos_id);
    for (Program* program : base_->programs()) programs_.push_back(program);
  }
  arena_.bind(programs_, model.store);
  upload_window_rope(model, context_tokens);
}

TttReport TttRun::run(const TttStanding* from) {
  order_ = make_order();
  for (const auto& [documents, set] : sets_) probe_causality(*set, model_, setup_.adapters);
  const std::int64_t full = setup_.config.batch_documents;
  const auto create_reusable = [&](std::int64_t queue) {
    const std::int64_t event = draw_++;
    if (!sets_.contains(full)) return;
    adapters(full).create(event);
    tell({TttEvent::Kind::create, queue, -1, -1, {}, &adapters(full)});
  };
  PhasePlan phases(setup_.config, plan_.chosen_documents);
  if (from) {
    restore(*from, phases);
  } else {
    create_reusable(-1);
  }
  for (std::int64_t queue = next_queue_; queue < static_cast<std::int64_t>(plan_.queue.size()); ++queue) {
    if (queue > 0 && at_boundary_) at_boundary_();
    const auto start = std::chrono::steady_clock::now();
    AdapterSet& set = begin_batch(queue);
    score_batch(queue, set);
    report_.batches.push_back(report_batch(queue, set, seconds_since(start)));
    if (listener_) listener_->on_batch(report_.batches.back());
    watch_for_collapse(report_.batches.back());
    next_queue_ = queue + 1;
    const auto boundary = phases.due(static_cast<std::int64_t>(scored_.size()));
    if (!boundary || !base_ || report_.fell_back) continue;
    train_base(*boundary, queue);
    create_reusable(queue);
  }
  report_.sums = book_.sums();
  report_.reference = reference_;
  report_.documents = plan_.chosen_documents;
  report_.bins = length_bins();
  report_.checks = {suffixes_.seed(), suffixes_.turns(), suffixes_.scores()};
  return report_;
}

// Batches of the full size share the reusable adapters; another size gets its own.
AdapterSet& TttRun::begin_batch(std::int64_t queue) {
  const DocumentBatch& batch = plan_.queue[static_cast<std::size_t>(queue)].batch;
  const auto documents = static_cast<std::int64_t>(batch.documents.size());
  AdapterSet& set = adapters(documents);
  if (report_.fell_back) {
    set.clear();
    return set;
  }
  const bool reusable = documents == setup_.config.batch_documents;
  if (!reusable) {
    set.create(draw_++);
  } else {
    set.reset(draw_);
    if (set.reset_draws()) ++draw_;
  }
  tell({reusable ? TttEvent::Kind::reset : TttEvent::Kind::create, queue, batch.index, -1, batch.documents,
        &set});
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
  for (std::size_t slot = 0; slot < batch.batch.documents.size(); ++slot) {
    scored_.push_back({batch.batch.index, static_cast<int>(slot), batch.batch.documents[slot]});
  }
}

TttRun::Turn TttRun::make_turn(std::int64_t queue, std::int64_t chunk, AdapterSet& set) {
  const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
  const WindowShape shape{window_documents(plan_, batch, chunk),
                          window_context(batch, chunk, setup_.config.context_tokens), batch.chunk_tokens};
  const std::span<const int> documents =
      std::span(batch.batch.documents).last(static_cast<std::size_t>(shape.documents));
  Turn turn{batch, queue, chunk, set, set.window(shape), documents, {}, false};
  for (const int number : documents) {
    const std::int64_t targets = plan_.targets(number);
    const std::int64_t chunks = chunk_count(targets, batch.chunk_tokens);
    Turn::Row row;
    row.active = chunk < chunks;
    row.more = chunk + 1 < chunks;
    if (row.active) row.window = chunk_window(targets, batch.chunk_tokens, shape.context, chunk);
    turn.trains = turn.trains || (row.more && !report_.fell_back);
    turn.rows.push_back(row);
  }
  fill_inputs(turn);
  return turn;
}

// Finished documents have no window, or one of zeros; places beyond a short chunk score position 0 of their
// row, for nobody.
void TttRun::fill_inputs(const Turn& turn) {
  const WindowShape& shape = turn.program.shape();
  tokens_.assign(static_cast<std::size_t>(shape.tokens()), 0);
  positions_.assign(static_cast<std::size_t>(shape.positions()), 0);
  targets_.assign(positions_.size(), 0);
  losses_.resize(positions_.size());
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    const ChunkWindow& window = turn.rows[slot].window;
    const std::int64_t start =
        plan_.document(turn.documents[slot]).start + window.window_start;  // in the stream
    const std::size_t row = slot * static_cast<std::size_t>(shape.context);
    for (std::int64_t i = 0; i < window.window_length; ++i) {
      tokens_[row + static_cast<std::size_t>(i)] = data_.tokens[static_cast<std::size_t>(start + i)];
    }
    const std::size_t place = slot * static_cast<std::size_t>(shape.scored);
    std::fill_n(positions_.begin() + static_cast<std::ptrdiff_t>(place), shape.scored,
                static_cast<std::int32_t>(row));
    for (std::int64_t i = 0; i < window.chunk_length; ++i) {
      const std::int64_t position = window.chunk_offset + i;
      positions_[place + static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(row) + static_cast<std::int32_t>(position);
      targets_[place + static_cast<std::size_t>(i)] =
          data_.tokens[static_cast<std::size_t>(start + position + 1)];
    }
  }
}

void TttRun::take_turn(Turn& turn) {
  score(turn);
  book(turn);
  if (!turn.trains) return;
  reveal(turn);
  update(turn);
}

std::vector<SuffixCheck::Window> TttRun::windows_of(const Turn& turn) const {
  const WindowShape& shape = turn.program.shape();
  std::vector<SuffixCheck::Window> windows;
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    const ChunkWindow& window = turn.rows[slot].window;
    windows.push_back({slot * static_cast<std::size_t>(shape.context),
                       slot * static_cast<std::size_t>(shape.scored), window.window_length,
                       window.chunk_offset, window.chunk_length});
  }
  return windows;
}

void TttRun::score(Turn& turn) {
  order_->score();
  const auto score_windows = [&](std::span<const std::int32_t> tokens, std::span<float> losses) {
    turn.program.set_inputs(tokens, positions_, targets_);
    turn.program.forward();
    turn.program.download_losses(losses);
  };
  const auto sample = suffixes_.next(tokens_, windows_of(turn));
  std::vector<float> changed(sample ? losses_.size() : 0);
  if (sample && sample->first) score_windows(sample->tokens, changed);
  score_windows(tokens_, losses_);
  if (sample && !sample->first) {
    score_windows(sample->tokens, changed);
    suffixes_.compare(*sample, losses_, changed);
    score_windows(tokens_, changed);  // the update follows from the activations of the real windows
  }
  if (sample) suffixes_.compare(*sample, losses_, changed);
  tell(TttEvent::Kind::score, turn, false);
}

void TttRun::book(Turn& turn) {
  order_->book();
  const auto scored = static_cast<std::size_t>(turn.program.shape().scored);
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    const Turn::Row& row = turn.rows[slot];
    if (!row.active) continue;
    const std::int64_t first =
        plan_.document(turn.documents[slot]).start + row.window.window_start + row.window.chunk_offset + 1;
    for (std::int64_t i = 0; i < row.window.chunk_length; ++i) {
      book_.enter(first + i, losses_[slot * scored + static_cast<std::size_t>(i)]);
    }
  }
  tell(TttEvent::Kind::book, turn, false);
}

// The objective: over documents with a later chunk, the sum of the chunk's mean losses.
void TttRun::reveal(Turn& turn) {
  order_->reveal();
  weights_.assign(losses_.size(), 0.0F);
  const std::int64_t scored = turn.program.shape().scored;
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    const Turn::Row& row = turn.rows[slot];
    if (!row.more) continue;
    const auto first = static_cast<std::ptrdiff_t>(static_cast<std::int64_t>(slot) * scored);
    std::fill_n(weights_.begin() + first, row.window.chunk_length,
                static_cast<float>(1.0 / static_cast<double>(row.window.chunk_length)));
  }
  turn.program.set_weights(weights_);
  tell(TttEvent::Kind::reveal, turn, true);
}

void TttRun::update(Turn& turn) {
  for (std::int64_t step = 0; step < setup_.config.gradient_steps; ++step) {
    order_->update();
    if (step > 0) turn.program.forward();  // the first step's activations are those of the scoring
    turn.set.update(turn.program, setup_.lr);
    tell(TttEvent::Kind::update, turn, true);
  }
}

TttBatchReport TttRun::report_batch(std::int64_t queue, AdapterSet& set, double seconds) {
  const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
  TttBatchReport report;
  report.queue = queue;
  report.batch_index = batch.batch.index;
  report.documents = static_cast<std::int64_t>(batch.batch.documents.size());
  report.longest_tokens = plan_.targets(batch.batch.documents.back());
  for (const int number : batch.batch.documents) {
    const std::int64_t first = plan_.document(number).start + 1;
    report.sums += book_.range(first, first + plan_.targets(number));
    if (!data_.reference.empty()) {
      reference_ += book_.range_of(data_.reference, first, first + plan_.targets(number));
    }
  }
  report.running = book_.sums();
  report.reference = reference_;
  report.norms = set.norms();
  report.adapted = !report_.fell_back;
  report.seconds = seconds;
  return report;
}

void TttRun::watch_for_collapse(const TttBatchReport& batch) {
  if (setup_.config.on_collapse == OnCollapse::off || data_.reference.empty() || report_.collapsed_at >= 0)
    return;
  const auto units =
      static_cast<double>(batch.running.bytes > 0 ? batch.running.bytes : batch.running.tokens);
  const double excess = (batch.running.loss_nats - batch.reference.loss_nats) / std::numbers::ln2 / units;
  if (excess <= setup_.config.collapse_margin) return;
  report_.collapsed_at = batch.queue;
  tell({TttEvent::Kind::collapse, batch.queue, batch.batch_index, -1, {}, nullptr});
  if (setup_.config.on_collapse != OnCollapse::fallback) return;
  report_.fell_back = true;
  tell({TttEvent::Kind::fallback, batch.queue, batch.batch_index, -1, {}, nullptr});
}

void TttRun::train_base(std::int64_t boundary, std::int64_t queue) {
  if (!order_->idle()) throw std::logic_error("the base model may only be trained between two batches");
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::uint16_t> tokens = phase_tokens(data_.tokens, plan_, scored_, boundary);
  TttPhaseReport phase;
  phase.phase = static_cast<std::int64_t>(report_.phases.size()) + 1;
  phase.documents = std::min<std::int64_t>(boundary, static_cast<std::int64_t>(scored_.size()));
  phase.tokens = static_cast<std::int64_t>(tokens.size());
  phase.steps = base_->run(tokens);
  phase.seconds = seconds_since(start);
  report_.phases.push_back(phase);
  tell({TttEvent::Kind::phase, queue, -1, -1, {}, nullptr});
  if (listener_) listener_->on_phase(report_.phases.back());
}

std::vector<TttLengthBin> TttRun::length_bins() const {
  std::map<int, TttLengthBin> bins;
  for (const ScoredDocument& one : scored_) {
    const std::int64_t targets = plan_.targets(one.number);
    const int power = std::bit_width(static_cast<std::uint64_t>(targets)) - 1;
    TttLengthBin& bin = bins[power];
    bin.shortest = std::int64_t{1} << power;
    bin.longest = 2 * bin.shortest - 1;
    ++bin.documents;
    const std::int64_t first = plan_.document(one.number).start + 1;
    bin.sums += book_.range(first, first + targets);
    if (!data_.reference.empty()) bin.reference += book_.range_of(data_.reference, first, first + targets);
  }
  std::vector<TttLengthBin> list;
  for (const auto& [power, bin] : bins) list.push_back(bin);
  return list;
}

void TttRun::tell(TttEvent::Kind kind, const Turn& turn, bool only_more) {
  if (!listener_) return;
  std::vector<int> documents;
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    if (only_more ? turn.rows[slot].more : turn.rows[slot].active) {
      documents.push_back(turn.documents[slot]);
    }
  }
  listener_->on_event({kind, turn.queue, turn.batch.batch.index, turn.chunk, documents, &turn.set});
}

void TttRun::tell(const TttEvent& event) {
  if (listener_) listener_->on_event(event);
}

}  // namespace mulligan
