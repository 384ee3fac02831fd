#include "framework/ttt/causality.h"

#include <sys/random.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "framework/core/error.h"
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

SuffixCheck::SuffixCheck(std::int64_t turns, std::int64_t windows, std::int64_t vocabulary,
                         std::uint64_t seed, bool full)
    : windows_left_(windows),
      every_(full ? 1 : std::clamp<std::int64_t>(turns / fewest_checks, 1, most_turns_apart)),
      vocabulary_(vocabulary),
      seed_(seed),
      full_(full) {}

// As many cuts as are still missing, dealt to the windows whose check is still to be expected, these included. Dealt
// to turns, the last ones, of a single long document, would need a pass for each of their cuts.
std::int64_t SuffixCheck::passes_of(std::span<const Window> windows) {
  std::int64_t longest = 0, scored = 0;
  for (const Window& window : windows) {
    longest = std::max(longest, window.chunk_length);
    scored += window.chunk_length > 0 ? 1 : 0;
  }
  const std::int64_t every_cut = std::max<std::int64_t>(longest - 1, 1);
  const std::int64_t expected = std::max<std::int64_t>({windows_left_ / every_, scored, 1});
  windows_left_ -= scored;
  if (full_ || scored == 0) return every_cut;
  return std::min(every_cut, std::max(fewest_passes, (fewest_cuts - cuts_ + expected - 1) / expected));
}

std::optional<SuffixCheck::Sample> SuffixCheck::next(std::span<const std::int32_t> tokens,
                                                     std::span<const Window> windows) {
  const auto turn = static_cast<std::uint64_t>(turn_++);
  const std::int64_t passes = passes_of(windows);
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
  sample.passes.assign(static_cast<std::size_t>(passes), {{tokens.begin(), tokens.end()}, {}});
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

namespace {

std::vector<float> losses_of(WindowProgram& window, std::span<const std::int32_t> tokens,
                             std::span<const std::int32_t> positions, std::span<const std::int32_t> targets) {
  std::vector<float> losses(positions.size());
  window.set_inputs(tokens, positions, targets);
  window.forward();
  window.download_losses(losses);
  return losses;
}

// Token ids for the probe: any will do.
std::vector<std::int32_t> made_up_tokens(std::int64_t count, std::int64_t vocabulary, const char* purpose) {
  const PhiloxStream stream(0, purpose);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(stream.bits(static_cast<std::uint64_t>(i)) %
                                               static_cast<std::uint64_t>(vocabulary)));
  }
  return tokens;
}

// Sets of documents to change such that for any two documents one set holds the first alone.
std::vector<std::vector<bool>> choices(std::int64_t documents) {
  if (documents == 1) return {{true}};
  std::vector<std::vector<bool>> sets;
  for (std::int64_t bit = 1; bit < documents; bit *= 2) {
    std::vector<bool> with, without;
    for (std::int64_t document = 0; document < documents; ++document) {
      with.push_back((document & bit) != 0);
      without.push_back((document & bit) == 0);
    }
    sets.push_back(with);
    sets.push_back(without);
  }
  return sets;
}

class CausalityProbe {
 public:
  CausalityProbe(WindowProgram& window, const BaseModel& model, const TttPlugin& plugin)
      : window_(window),
        shape_(window.shape()),
        vocabulary_(model.config.vocabulary),
        plugin_(plugin),
        tokens_(made_up_tokens(shape_.tokens(), vocabulary_, "ttt/probe")),
        targets_(made_up_tokens(shape_.positions(), vocabulary_, "ttt/probe targets")) {}

  // Positions all over the windows; the first halves must stay the same where the second halves change.
  void second_halves() const {
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < shape_.positions(); ++i) {
      const std::int64_t document = i / shape_.scored, place = i % shape_.scored;
      positions.push_back(
          static_cast<std::int32_t>(document * shape_.context + place * shape_.context / shape_.scored));
    }
    const std::vector<float> before = losses_of(window_, tokens_, positions, targets_);
    for (const std::vector<bool>& chosen : choices(shape_.documents)) {
      const auto changes = [&](std::int64_t token) {
        return chosen[static_cast<std::size_t>(token / shape_.context)] &&
               token % shape_.context >= shape_.context / 2;
      };
      compare(positions, before, changes);
    }
  }

  // In each document another position at a time, and as many before it as there are scores.
  void every_position() const {
    for (std::int64_t first = 0; first < shape_.context; first += shape_.documents) {
      const auto last_kept = [&](std::int64_t document) { return (first + document) % shape_.context; };
      std::vector<std::int32_t> positions;
      for (std::int64_t i = 0; i < shape_.positions(); ++i) {
        const std::int64_t document = i / shape_.scored, back = i % shape_.scored;
        positions.push_back(static_cast<std::int32_t>(document * shape_.context +
                                                      std::max<std::int64_t>(last_kept(document) - back, 0)));
      }
      compare(positions, losses_of(window_, tokens_, positions, targets_),
              [&](std::int64_t token) { return token % shape_.context > last_kept(token / shape_.context); });
    }
  }

 private:
  // The losses of positions that do not change themselves must be those of before.
  template <typename Changes>
  void compare(const std::vector<std::int32_t>& positions, const std::vector<float>& before,
               const Changes& changes) const {
    std::vector<std::int32_t> changed = tokens_;
    for (std::int64_t i = 0; i < shape_.tokens(); ++i) {
      auto& token = changed[static_cast<std::size_t>(i)];
      if (changes(i)) token = static_cast<std::int32_t>((token + 1) % vocabulary_);
    }
    const std::vector<float> after = losses_of(window_, changed, positions, targets_);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (changes(positions[i]) || std::memcmp(&before[i], &after[i], sizeof(float)) == 0) continue;
      throw config_error(
          "[ttt.adapters]: with {} the score of position {} of document {} in windows of {} tokens moved "
          "from {} to {} when only later tokens, or other documents, changed, so its scores would be "
          "illegal; use another plugin.",
          plugin_.plugin().description(), positions[i] % shape_.context, positions[i] / shape_.context,
          shape_.context, before[i], after[i]);
    }
  }

  WindowProgram& window_;
  WindowShape shape_;
  std::int64_t vocabulary_;
  const TttPlugin& plugin_;
  std::vector<std::int32_t> tokens_, targets_;
};

}  // namespace

void probe_causality(AdapterSet& set, const BaseModel& model, const TttPlugin& plugin) {
  set.fill_at_random();
  for (WindowProgram* window : set.windows()) {
    const bool unknown = window->unknown_kernels();
    if (!unknown && window != &set.longest_window()) continue;
    const CausalityProbe probe(*window, model, plugin);
    probe.second_halves();
    if (unknown) probe.every_position();
  }
}

}  // namespace mulligan
