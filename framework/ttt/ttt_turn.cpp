// One turn: its inputs, its passes and what is told of it; the windows without adaptation.
#include <algorithm>
#include <limits>

#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

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

}  // namespace mulligan
