#include "framework/ttt/causality_probe.h"

#include <algorithm>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/philox.h"

namespace mulligan {
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
