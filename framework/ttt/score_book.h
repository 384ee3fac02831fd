// What a score passes through: the order of its steps, the book, the exchange with other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/byte_count.h"
#include "framework/ranks/communicator.h"

namespace mulligan {

// TurnOrder: the state machine of one chunk, score -> book -> reveal -> update.

// Every part of the host that scores, books or hands out a token's weight passes through here first. A step
// out of order is a std::logic_error: the host itself is broken, so no score may be reported.
class TurnOrder {
 public:
  virtual ~TurnOrder() = default;

  // Losses of a chunk are computed with the adapters as they are.
  void score();
  // They are entered into the score book, for good.
  void book();
  // The chunk's tokens get their weights in the objective.
  void reveal();
  // The adapters take a step towards the revealed tokens; any number of times.
  void update();
  // The chunk is done.
  void finish();
  // Whether no chunk is under way, so that a base update may run.
  bool idle() const { return stage_ == Stage::idle; }

 protected:
  virtual void require(bool in_order, const char* step) const;

 private:
  enum class Stage { idle, scored, booked, revealed };
  Stage stage_ = Stage::idle;
};

// ScoreBook: each token's score, entered once.

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

// Scores of the same tokens with adaptation and without.
struct Comparison {
  ScoreSums with, without;

  Comparison& operator+=(const Comparison& other);
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
  // Both, of the targets whose other loss is not NaN.
  Comparison compare(std::span<const float> without, std::int64_t first, std::int64_t last) const;

 private:
  std::uint64_t bytes_of(std::int64_t target) const;
  ScoreSums score_of(std::int64_t target, float loss) const;

  std::span<const std::uint16_t> tokens_;
  const ByteCounter* bytes_;
  std::vector<bool> booked_;   // by stream position
  std::vector<float> losses_;  // by stream position
  ScoreSums sums_;
};

// LossExchange: losses by stream position, of which each rank has computed some, known to all ranks.
class LossExchange {
 public:
  // For streams of `positions` tokens. Takes memory of the store, f32 [positions]. All ranks make it alike;
  // the arguments must outlive it.
  LossExchange(TensorStore& store, Communicator& communicator, std::int64_t positions);

  // Each position is 0 on all ranks but one at most; then all have it, to the bit. Called by all. Throws
  // run_error where the transfer failed.
  void merge(std::vector<float>& losses);

 private:
  TensorStore& store_;
  Communicator& communicator_;
  std::unique_ptr<TransferBatch> sum_;
};

}  // namespace mulligan
