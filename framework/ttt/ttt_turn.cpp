// One chunk of one batch: its inputs, and the four steps of a turn.
#include <algorithm>
#include <limits>

#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

TttScorer::Turn TttScorer::make_turn(std::int64_t queue, std::int64_t chunk, AdapterSet& set) {
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
void TttScorer::fill_inputs(const Turn& turn) {
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

void TttScorer::take_turn(Turn& turn) {
  score(turn);
  book(turn);
  if (!turn.trains) return;
  plan(turn);
  if (turn.choice.steps == 0) return;
  reveal(turn);
  update(turn);
}

std::vector<SuffixCheck::Window> TttScorer::windows_of(const Turn& turn) const {
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

SuffixCheck::Scores TttScorer::score_windows(const Turn& turn, std::span<const std::int32_t> tokens,
                                             std::span<const std::int32_t> targets, bool with_normalisers) {
  SuffixCheck::Scores scores;
  scores.losses.resize(losses_.size());
  turn.program.set_inputs(tokens, positions_, targets);
  turn.program.forward();
  turn.program.download_losses(scores.losses);
  if (with_normalisers) {
    scores.normalisers.resize(losses_.size());
    turn.program.download_normalisers(scores.normalisers);
  }
  for (int number = 0; feed_ && number < setup_.transform->biases(); ++number) {
    scores.proposed.emplace_back(losses_.size());
    turn.program.download_proposed_losses(number, scores.proposed.back());
  }
  return scores;
}

// The real windows come last: the update follows from their activations.
void TttScorer::score(Turn& turn) {
  order_->score();
  propose(turn);
  const std::vector<SuffixCheck::Pass> passes =
      suffixes_.passes(turn.queue, turn.chunk, tokens_, targets_, windows_of(turn));
  std::vector<SuffixCheck::Scores> changed;
  for (const SuffixCheck::Pass& pass : passes)
    changed.push_back(score_windows(turn, pass.tokens, pass.targets, true));
  const SuffixCheck::Scores real = score_windows(turn, tokens_, targets_, !passes.empty());
  for (std::size_t number = 0; number < passes.size(); ++number)
    SuffixCheck::compare(turn.queue, turn.chunk, passes[number], real, changed[number]);
  apply_proposals(real);
  tell(TttEventKind::score, turn, false);
}

void TttScorer::score_chunk_without(std::int64_t queue, std::int64_t chunk, std::vector<float>& losses) {
  const auto& documents = plan_.queue[static_cast<std::size_t>(queue)].batch.documents;
  const Turn turn = make_turn(queue, chunk, adapters(static_cast<std::int64_t>(documents.size())));
  for (int number = 0; setup_.transform && number < setup_.transform->biases(); ++number)
    turn.program.set_proposal(number, std::vector<std::int32_t>(targets_.size(), -1));
  const SuffixCheck::Scores scores = score_windows(turn, tokens_, targets_, false);
  const auto scored = static_cast<std::size_t>(turn.program.shape().scored);
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    if (!turn.rows[slot].active) continue;
    const ChunkWindow& window = turn.rows[slot].window;
    const std::int64_t first =
        plan_.document(turn.documents[slot]).start + window.window_start + window.chunk_offset + 1;
    std::copy_n(scores.losses.begin() + static_cast<std::ptrdiff_t>(slot * scored), window.chunk_length,
                losses.begin() + first);
  }
}

std::vector<float> TttScorer::score_without() {
  const auto compared = compared_chunks(plan_, setup_.config.context_tokens);
  std::vector<float> losses(data_.tokens.size(), 0.0F);
  for (const std::int64_t queue : own_) {
    const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
    adapters(static_cast<std::int64_t>(batch.batch.documents.size())).clear();
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      if (!compared.contains({queue, chunk})) continue;
      if (at_chunk_) at_chunk_();
      score_chunk_without(queue, chunk, losses);
    }
  }
  if (setup_.losses) setup_.losses->merge(losses);
  std::vector<float> known(losses.size(), std::numeric_limits<float>::quiet_NaN());
  for (const auto& [queue, chunk] : compared) {
    const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
    for (const int number : batch.batch.documents) {
      const std::int64_t begin = chunk * batch.chunk_tokens;
      const std::int64_t count = std::min(batch.chunk_tokens, plan_.targets(number) - begin);
      const std::int64_t first = plan_.document(number).start + 1 + begin;
      if (count > 0) std::copy_n(losses.begin() + first, count, known.begin() + first);
    }
  }
  return known;
}

void TttScorer::book(Turn& turn) {
  order_->book();
  const auto scored = static_cast<std::size_t>(turn.program.shape().scored);
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    const Turn::Row& row = turn.rows[slot];
    if (!row.active) continue;
    const std::int64_t first =
        plan_.document(turn.documents[slot]).start + row.window.window_start + row.window.chunk_offset + 1;
    for (std::int64_t i = 0; i < row.window.chunk_length; ++i) {
      const std::size_t place = slot * scored + static_cast<std::size_t>(i);
      book_.enter(first + i, losses_[place]);
      if (feed_) plain_book_[static_cast<std::size_t>(first + i)] = plain_losses_[place];
    }
  }
  tell(TttEventKind::book, turn, false);
}

void TttScorer::plan(Turn& turn) {
  turn.choice = rule_->choose(turn.chunk, book_);
  std::string chosen;
  if (!setup_.config.audit.empty()) {
    const std::size_t finished = turn.batch.batch.documents.size() - turn.documents.size();
    std::vector<std::size_t> shown;
    for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
      if (turn.rows[slot].more) shown.push_back(finished + slot);
    }
    chosen = rule_->text(turn.choice, shown);
  }
  tell(TttEventKind::plan, turn, true, chosen);
}

// The objective: over documents with a later chunk, the sum of the chunk's mean losses, weighed by the rule.
void TttScorer::reveal(Turn& turn) {
  order_->reveal();
  weights_.assign(losses_.size(), 0.0F);
  const std::int64_t scored = turn.program.shape().scored;
  const std::size_t finished = turn.batch.batch.documents.size() - turn.documents.size();
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    const Turn::Row& row = turn.rows[slot];
    if (!row.more) continue;
    const auto first = static_cast<std::ptrdiff_t>(static_cast<std::int64_t>(slot) * scored);
    const double weight = turn.choice.weight(finished + slot) / static_cast<double>(row.window.chunk_length);
    std::fill_n(weights_.begin() + first, row.window.chunk_length, static_cast<float>(weight));
  }
  turn.program.set_weights(weights_);
  tell(TttEventKind::reveal, turn, true);
}

void TttScorer::update(Turn& turn) {
  for (std::int64_t step = 0; step < turn.choice.steps; ++step) {
    order_->update();
    if (step > 0) turn.program.forward();  // the first step's activations are those of the scoring
    turn.set.update(turn.program, setup_.lr * turn.choice.lr_factor);
    tell(TttEventKind::update, turn, true);
  }
}

void TttScorer::tell(TttEventKind kind, const Turn& turn, bool only_more, std::string chosen) {
  if (!listener_ && !buffers_events()) return;
  std::vector<int> documents;
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    if (only_more ? turn.rows[slot].more : turn.rows[slot].active) {
      documents.push_back(turn.documents[slot]);
    }
  }
  tell({kind, turn.queue, turn.batch.batch.index, turn.chunk, documents, &turn.set, std::move(chosen)});
}

}  // namespace mulligan
