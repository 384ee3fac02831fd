// The book of scores, and sums over them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/core/score.h"
#include "framework/data/byte_count.h"
#include "framework/ttt/document_plan.h"

namespace mulligan {

// Scores of the same tokens with adaptation and without.
struct Comparison {
  ScoreSums with, without;

  Comparison& operator+=(const Comparison& other) {
    with += other.with;
    without += other.without;
    return *this;
  }
};

// ScoreBook: each token's score, entered once. Losses are by stream position.
class ScoreBook {
 public:
  // `tokens` is the whole stream; `bytes` may be null. Both must outlive this object.
  ScoreBook(std::span<const std::uint16_t> tokens, const ByteCounter* bytes);

  // Enters the loss of a target. Throws std::logic_error if it was booked before, and run_error if the loss is not finite.
  void enter(std::int64_t target, float loss_nats);
  float loss(std::int64_t target) const { return losses_[static_cast<std::size_t>(target)]; }

  // 0 for targets that are not booked.
  const std::vector<float>& losses() const { return losses_; }
  // All that was booked, summed in the order of booking.
  const ScoreSums& sums() const { return sums_; }
  // The sums over targets that must all have been booked (std::logic_error).
  ScoreSums sums(const TargetRange& range) const;
  // The same sums of other losses.
  ScoreSums sums_of(std::span<const float> losses, const TargetRange& range) const;
  // Both, of the targets whose other loss is not NaN; nothing without other losses.
  Comparison compare(std::span<const float> without, const TargetRange& range) const;

 private:
  ScoreSums score_of(std::int64_t target, float loss) const;

  std::span<const std::uint16_t> tokens_;
  const ByteCounter* bytes_;
  std::vector<bool> booked_;
  std::vector<float> losses_;
  ScoreSums sums_;
};

}  // namespace mulligan
