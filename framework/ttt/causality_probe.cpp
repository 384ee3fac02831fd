#include "framework/ttt/causality_probe.h"

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

}  // namespace

void probe_causality(AdapterSet& set, const BaseModel& model, const TttPlugin& plugin) {
  WindowProgram& window = set.longest_window();
  const WindowShape shape = window.shape();
  set.fill_at_random();
  const auto tokens = made_up_tokens(shape.tokens(), model.config.vocabulary, "ttt/probe");
  const auto targets = made_up_tokens(shape.positions(), model.config.vocabulary, "ttt/probe targets");
  // Positions all over the windows; the first halves must stay the same where the second halves change.
  std::vector<std::int32_t> positions;
  for (std::int64_t i = 0; i < shape.positions(); ++i) {
    const std::int64_t document = i / shape.scored, place = i % shape.scored;
    positions.push_back(
        static_cast<std::int32_t>(document * shape.context + place * shape.context / shape.scored));
  }
  const auto changes = [&](const std::vector<bool>& chosen, std::int64_t token) {
    return chosen[static_cast<std::size_t>(token / shape.context)] &&
           token % shape.context >= shape.context / 2;
  };
  const std::vector<float> before = losses_of(window, tokens, positions, targets);
  for (const std::vector<bool>& chosen : choices(shape.documents)) {
    std::vector<std::int32_t> changed = tokens;
    for (std::int64_t i = 0; i < shape.tokens(); ++i) {
      auto& token = changed[static_cast<std::size_t>(i)];
      if (changes(chosen, i)) token = static_cast<std::int32_t>((token + 1) % model.config.vocabulary);
    }
    const std::vector<float> after = losses_of(window, changed, positions, targets);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (changes(chosen, positions[i]) || std::memcmp(&before[i], &after[i], sizeof(float)) == 0) continue;
      throw config_error(
          "[ttt.adapters]: with {} the score of position {} of document {} moved from {} to {} when only "
          "later tokens, or "
          "other documents, changed, so its scores would be illegal; use another plugin.",
          plugin.plugin().description(), positions[i] % shape.context, positions[i] / shape.context,
          before[i], after[i]);
    }
  }
}

}  // namespace mulligan
