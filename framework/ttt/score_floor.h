// A floor for scores: what is below it, no adaptation to the text before a token can have reached.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/ttt/score_book.h"

namespace mulligan {

// Nats of each token of a stream (of the first: 0) by a compressor that learns as it goes: counts after the
// last 0 to 5 tokens, each order blended with the shorter one.
std::vector<float> compressed_nats(std::span<const std::uint16_t> tokens, std::int64_t vocabulary);

// Why the scores of `book` cannot be, or empty. The floor is half of what the better of two gives, token by
// token: the model as it was (`plain`, by stream position; empty: unknown) and the compressor. A mixture of both
// that knew which one to trust for each token would still need twice as much. It is worked out only where the
// score is below half of the plain one.
std::string floor_problem(const ScoreBook& book, std::span<const std::uint16_t> tokens,
                          std::span<const float> plain, std::int64_t vocabulary);

}  // namespace mulligan
