#include "framework/ttt/score_book.h"

#include <fmt/format.h>
#include <cmath>
#include <stdexcept>

#include "framework/core/error.h"

namespace mulligan {

ScoreBook::ScoreBook(std::span<const std::uint16_t> tokens, const ByteCounter* bytes)
    : tokens_(tokens), bytes_(bytes), booked_(tokens.size()), losses_(tokens.size()) {}

ScoreSums ScoreBook::score_of(std::int64_t target, float loss) const {
  const auto position = static_cast<std::size_t>(target);
  return {static_cast<double>(loss), 1,
          bytes_ ? static_cast<std::uint64_t>(bytes_->bytes_at(tokens_, position)) : 0};
}

void ScoreBook::enter(std::int64_t target, float loss_nats) {
  const auto position = static_cast<std::size_t>(target);
  if (target < 1 || position >= booked_.size()) throw std::logic_error("ScoreBook: no such token");
  if (booked_[position]) {
    throw std::logic_error(
        fmt::format("the token at position {} was scored twice; its first score stands", target));
  }
  if (!std::isfinite(loss_nats)) {
    throw run_error(
        "the loss of the validation token at position {} is {}; test-time "
        "training has diverged, lower ttt.optimizer.lr or raise its weight decay.",
        target, loss_nats);
  }
  booked_[position] = true;
  losses_[position] = loss_nats;
  sums_ += score_of(target, loss_nats);
}

ScoreSums ScoreBook::sums(const TargetRange& range) const {
  for (std::int64_t target = range.first; target < range.last; ++target) {
    if (!booked_[static_cast<std::size_t>(target)])
      throw std::logic_error(fmt::format("the token at position {} has no score yet", target));
  }
  return sums_of(losses_, range);
}

ScoreSums ScoreBook::sums_of(std::span<const float> losses, const TargetRange& range) const {
  ScoreSums sums;
  for (std::int64_t target = range.first; target < range.last; ++target)
    sums += score_of(target, losses[static_cast<std::size_t>(target)]);
  return sums;
}

Comparison ScoreBook::compare(std::span<const float> without, const TargetRange& range) const {
  Comparison compared;
  for (std::int64_t target = range.first; !without.empty() && target < range.last; ++target) {
    const float other = without[static_cast<std::size_t>(target)];
    if (std::isnan(other)) continue;
    compared += {score_of(target, loss(target)), score_of(target, other)};
  }
  return compared;
}

}  // namespace mulligan
