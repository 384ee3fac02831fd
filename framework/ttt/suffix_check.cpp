#include "framework/ttt/suffix_check.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "framework/core/philox.h"

namespace mulligan {
namespace {

constexpr std::int64_t most_turns_apart = 100;
constexpr std::int64_t fewest_checks = 16;
constexpr std::int64_t fewest_cuts = 136;  // of a run: finds one in thirty with 99 percent
constexpr std::int64_t fewest_passes = 2;  // of a turn

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

SuffixCheck::SuffixCheck(std::int64_t turns, std::int64_t vocabulary, std::uint64_t seed, bool full)
    : turns_(turns),
      every_(full ? 1 : std::clamp<std::int64_t>(turns / fewest_checks, 1, most_turns_apart)),
      vocabulary_(vocabulary),
      seed_(seed),
      full_(full) {}

// As many cuts as are still missing, dealt to the turns that are still to be expected, this one included.
std::int64_t SuffixCheck::passes_of(std::uint64_t turn, std::span<const Window> windows) const {
  std::int64_t longest = 0, scored = 0;
  for (const Window& window : windows) {
    longest = std::max(longest, window.chunk_length);
    scored += window.chunk_length > 0 ? 1 : 0;
  }
  const std::int64_t every_cut = std::max<std::int64_t>(longest - 1, 1);
  if (full_ || scored == 0) return every_cut;
  const std::int64_t checks = std::max<std::int64_t>((turns_ - static_cast<std::int64_t>(turn)) / every_, 1);
  const std::int64_t missing = std::max<std::int64_t>(fewest_cuts - cuts_, 0);
  return std::min(every_cut, std::max(fewest_passes, (missing + checks * scored - 1) / (checks * scored)));
}

std::optional<SuffixCheck::Sample> SuffixCheck::next(std::span<const std::int32_t> tokens,
                                                     std::span<const Window> windows) {
  const auto turn = static_cast<std::uint64_t>(turn_++);
  // Each turn by itself: had every hundred of them one that is checked, the rest of a hundred would be safe behind it.
  const PhiloxStream choice(seed_, "ttt/suffix turn");
  if (choice.bits(turn) % static_cast<std::uint64_t>(every_) != 0) return std::nullopt;
  const PhiloxStream draws(seed_ + turn, "ttt/suffix tokens");
  std::uint64_t index = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(draws.uniform(index++) * static_cast<double>(bound));
  };
  Sample sample;
  sample.turn = static_cast<std::int64_t>(turn);
  sample.first = below(2) == 1;
  sample.passes.resize(static_cast<std::size_t>(passes_of(turn, windows)));
  const auto passes = static_cast<std::int64_t>(sample.passes.size());
  for (Pass& pass : sample.passes) pass.tokens.assign(tokens.begin(), tokens.end());
  for (const Window& window : windows) {
    if (window.chunk_length == 0) continue;
    // Equal steps from a place that is drawn, so that no cut of a window comes twice while there are others.
    const std::int64_t places = std::max<std::int64_t>(window.chunk_length - 1, 1);
    const std::int64_t start = below(places), step = std::max<std::int64_t>(places / passes, 1);
    for (std::int64_t number = 0; number < passes; ++number) {
      Pass& pass = sample.passes[static_cast<std::size_t>(number)];
      const std::int64_t kept = 1 + (start + number * step) % places;  // scores that may not move
      for (std::int64_t i = 0; i < kept; ++i)
        pass.scores.push_back(window.first_score + static_cast<std::size_t>(i));
      for (std::int64_t i = window.chunk_offset + kept; i < window.length; ++i) {
        auto& token = pass.tokens[window.first_token + static_cast<std::size_t>(i)];
        if (vocabulary_ > 1)
          token = static_cast<std::int32_t>((token + 1 + below(vocabulary_ - 1)) % vocabulary_);
      }
    }
    if (window.chunk_length > 1) cuts_ += std::min(passes, places);
  }
  ++checked_;
  for (const Pass& pass : sample.passes) compared_ += static_cast<std::int64_t>(pass.scores.size());
  return sample;
}

void SuffixCheck::compare(std::int64_t turn, const Pass& pass, std::span<const float> real,
                          std::span<const float> changed) const {
  for (const std::size_t place : pass.scores) {
    if (std::memcmp(&real[place], &changed[place], sizeof(float)) == 0) continue;
    throw VoidRun(
        fmt::format("the run is void: in turn {} a score moved from {} to {} when only later tokens changed "
                    "(seed {}), so the "
                    "scores of this run read tokens before they were scored; use other plugins in [ttt]",
                    turn, real[place], changed[place], seed_));
  }
}

double found_one_in(std::int64_t checked) {
  if (checked == 0) return 1;
  return 1.0 / (1.0 - std::pow(0.01, 1.0 / static_cast<double>(checked)));
}

}  // namespace mulligan
