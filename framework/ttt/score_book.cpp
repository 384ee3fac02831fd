#include "framework/ttt/score_book.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "framework/core/error.h"

namespace mulligan {

ScoreSums& ScoreSums::operator+=(const ScoreSums& other) {
  loss_nats += other.loss_nats;
  tokens += other.tokens;
  bytes += other.bytes;
  return *this;
}

double ScoreSums::mean_loss_nats() const {
  return loss_nats / static_cast<double>(tokens);
}

double ScoreSums::bpb() const {
  if (bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  return loss_nats / std::numbers::ln2 / static_cast<double>(bytes);
}

ScoreBook::ScoreBook(std::span<const std::uint16_t> tokens, const ByteCounter* bytes)
    : tokens_(tokens), bytes_(bytes), booked_(tokens.size()), losses_(tokens.size()) {}

std::uint64_t ScoreBook::bytes_of(std::int64_t target) const {
  if (!bytes_) return 0;
  const auto position = static_cast<std::size_t>(target);
  return static_cast<std::uint64_t>(bytes_->bytes_at(tokens_, position));
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
  sums_ += {static_cast<double>(loss_nats), 1, bytes_of(target)};
}

void ScoreBook::restore(std::span<const float> losses, const ScoreSums& sums,
                        std::span<const std::pair<std::int64_t, std::int64_t>> ranges) {
  if (sums_.tokens != 0 || losses.size() != losses_.size())
    throw std::logic_error("ScoreBook: a book is restored before anything is entered, with all its losses");
  for (const auto& [first, last] : ranges) {
    for (std::int64_t target = first; target < last; ++target)
      booked_[static_cast<std::size_t>(target)] = true;
  }
  losses_.assign(losses.begin(), losses.end());
  sums_ = sums;
}

ScoreSums ScoreBook::range(std::int64_t first, std::int64_t last) const {
  for (std::int64_t target = first; target < last; ++target) {
    if (!booked(target))
      throw std::logic_error(fmt::format("the token at position {} has no score yet", target));
  }
  return range_of(losses_, first, last);
}

ScoreSums ScoreBook::range_of(std::span<const float> losses, std::int64_t first, std::int64_t last) const {
  ScoreSums sums;
  for (std::int64_t target = first; target < last; ++target) {
    sums += {static_cast<double>(losses[static_cast<std::size_t>(target)]), 1, bytes_of(target)};
  }
  return sums;
}

}  // namespace mulligan
