#include "framework/ttt/suffix_check.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "framework/core/philox.h"

namespace mulligan {
namespace {

constexpr std::int64_t most_turns_apart = 100;
constexpr std::int64_t fewest_checks = 4;

}  // namespace

std::uint64_t unpredictable_seed() {
  std::uint64_t seed = 0;
  ssize_t got = -1;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof seed)) {
    throw run_error(
        "the system gives no random numbers ({}), so the scores of test-time training cannot be checked",
        std::strerror(errno));
  }
  return seed;
}

SuffixCheck::SuffixCheck(std::int64_t turns, std::int64_t vocabulary, std::uint64_t seed)
    : every_(std::clamp<std::int64_t>(turns / fewest_checks, 1, most_turns_apart)),
      vocabulary_(vocabulary),
      seed_(seed) {}

std::optional<SuffixCheck::Sample> SuffixCheck::next(std::span<const std::int32_t> tokens,
                                                     std::span<const Window> windows) {
  const auto turn = static_cast<std::uint64_t>(turn_++), every = static_cast<std::uint64_t>(every_);
  const PhiloxStream choice(seed_, "ttt/suffix turn");
  if (turn % every != choice.bits(turn / every) % every) return std::nullopt;
  const PhiloxStream draws(seed_ + turn, "ttt/suffix tokens");
  std::uint64_t index = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(draws.uniform(index++) * static_cast<double>(bound));
  };
  Sample sample;
  sample.tokens.assign(tokens.begin(), tokens.end());
  sample.first = below(2) == 1;
  for (const Window& window : windows) {
    if (window.chunk_length == 0) continue;
    const std::int64_t kept =
        1 + below(std::max<std::int64_t>(window.chunk_length - 1, 1));  // scores that may not move
    for (std::int64_t i = 0; i < kept; ++i)
      sample.scores.push_back(window.first_score + static_cast<std::size_t>(i));
    for (std::int64_t i = window.chunk_offset + kept; i < window.length; ++i) {
      auto& token = sample.tokens[window.first_token + static_cast<std::size_t>(i)];
      if (vocabulary_ > 1)
        token = static_cast<std::int32_t>((token + 1 + below(vocabulary_ - 1)) % vocabulary_);
    }
  }
  ++checked_;
  return sample;
}

void SuffixCheck::compare(const Sample& sample, std::span<const float> real, std::span<const float> changed) {
  for (const std::size_t place : sample.scores) {
    ++compared_;
    if (std::memcmp(&real[place], &changed[place], sizeof(float)) == 0) continue;
    throw VoidRun(
        fmt::format("the run is void: in turn {} a score moved from {} to {} when only later tokens changed "
                    "(seed {}), so the "
                    "scores of this run read tokens before they were scored; use other plugins in [ttt]",
                    turn_ - 1, real[place], changed[place], seed_));
  }
}

}  // namespace mulligan
