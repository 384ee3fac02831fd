// ScoreBook: each token's score, entered once.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "framework/data/byte_count.h"

namespace mulligan {

// Sums over booked tokens.
struct ScoreSums {
  double loss_nats = 0;
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;  // 0 without a byte table

  ScoreSums& operator+=(const ScoreSums& other);
  double mean_loss_nats() const;
  // loss / ln 2 / bytes; NaN without bytes.
  double bpb() const;
};

class ScoreBook {
 public:
  // `tokens` is the whole stream; `bytes` may be null. Both must outlive this object.
  ScoreBook(std::span<const std::uint16_t> tokens, const ByteCounter* bytes);

  // Enters the loss of the target at stream position `target` (>= 1). Throws std::logic_error when it was
  // booked before, and run_error when the loss is not finite.
  void enter(std::int64_t target, float loss_nats);
  // Takes the place of entering [first, last) of `ranges` again, after an interruption: their losses, by
  // stream position, and the sums in the order in which they were booked. Throws std::logic_error when
  // anything was entered before.
  void restore(std::span<const float> losses, const ScoreSums& sums,
               std::span<const std::pair<std::int64_t, std::int64_t>> ranges);
  bool booked(std::int64_t target) const { return booked_[static_cast<std::size_t>(target)]; }
  // The booked loss in nats.
  float loss(std::int64_t target) const { return losses_[static_cast<std::size_t>(target)]; }

  // By stream position; 0 where nothing was booked.
  const std::vector<float>& losses() const { return losses_; }
  // All that was booked, summed in the order of booking.
  const ScoreSums& sums() const { return sums_; }
  // The sums over the targets [first, last), of which all must have been booked (std::logic_error).
  ScoreSums range(std::int64_t first, std::int64_t last) const;
  // The same sums of other losses, by stream position.
  ScoreSums range_of(std::span<const float> losses, std::int64_t first, std::int64_t last) const;

 private:
  std::uint64_t bytes_of(std::int64_t target) const;

  std::span<const std::uint16_t> tokens_;
  const ByteCounter* bytes_;
  std::vector<bool> booked_;   // by stream position
  std::vector<float> losses_;  // by stream position
  ScoreSums sums_;
};

}  // namespace mulligan
