// How a token is chosen from logits.
#pragma once

#include <cstdint>
#include <span>

namespace mulligan {

struct Sampling {
  double temperature = 1.0;  // 0: the most probable token always
  std::int64_t top_k = 0;    // choose among the k most probable; 0: among all
  std::uint64_t seed = 0;
};

// The token for draw number `draw` of the seed: a pure function of its arguments (Philox), in double
// precision. Of equal logits the lower token counts as the more probable. Precondition: logits are finite
// and not empty.
int choose_token(std::span<const float> logits, const Sampling& sampling, std::uint64_t draw);

// -log softmax(logits)[token], in nats.
double token_loss_nats(std::span<const float> logits, int token);

}  // namespace mulligan
