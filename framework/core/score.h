// Score: what scoring the tokens of a text comes to.
#pragma once

#include <cstdint>
#include <limits>
#include <numbers>
#include <string>

namespace mulligan {

// A loss by bytes of text; NaN without bytes.
inline double bits_per_byte(double loss_nats, std::uint64_t bytes) {
  return bytes == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : loss_nats / std::numbers::ln2 / static_cast<double>(bytes);
}

// Sums over scored tokens.
struct ScoreSums {
  double loss_nats = 0;
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;  // 0 without a byte table

  ScoreSums& operator+=(const ScoreSums& other) {
    loss_nats += other.loss_nats;
    tokens += other.tokens;
    bytes += other.bytes;
    return *this;
  }
  double mean_loss_nats() const { return loss_nats / static_cast<double>(tokens); }
  double bpb() const { return bits_per_byte(loss_nats, bytes); }
};

struct Score {
  double val_loss_nats = 0;  // per token
  double val_bpb = 0;        // bits per byte; NaN without bytes
  std::uint64_t tokens = 0;  // scored
  std::uint64_t bytes = 0;   // of the scored tokens; 0 without a tokenizer and of masked tokens
  double seconds = 0;
  bool masked = false;         // the loss of filling in masked tokens, which is no loss of a text
  std::string byte_rule = {};  // that counts `bytes` ("original", "tokenizer"); "" without bytes
};

}  // namespace mulligan
