#include "framework/ttt/causality.h"

#include <algorithm>
#include <cstring>

#include "framework/core/philox.h"

namespace mulligan {
namespace {

constexpr std::uint64_t check_seed = 0;
constexpr std::int64_t shares = 100;  // one of them is for checks
// A window can be cut before each scored token but the first; where there is but one, after it.
std::int64_t cuts_of(std::int64_t chunk_length) {
  return std::max<std::int64_t>(chunk_length - 1, 1);
}

}  // namespace

SuffixCheck::SuffixCheck(TttCheck mode, bool repeats, const DocumentPlan& plan, std::int64_t context_tokens,
                         std::int64_t vocabulary)
    : vocabulary_(vocabulary) {
  const std::vector<PlannedChunk> chunks = shuffled_chunks(plan, context_tokens, "ttt/check order");
  std::int64_t cost = 0, used = 0;
  for (const PlannedChunk& one : chunks) cost += one.cost;
  summary_ = {mode, repeats, 0, static_cast<std::int64_t>(chunks.size()), 0, 0};
  const bool full = mode == TttCheck::full;
  for (const PlannedChunk& one : chunks) {
    const bool fits = full || (used + one.tokens) * shares <= cost;
    if (mode == TttCheck::off || !repeats || !fits) continue;
    const PlannedBatch& batch = plan.batch(one.queue);
    std::int64_t passes = 1;
    for (const int number : batch.documents) {
      const std::int64_t length = plan.range(batch, number, one.chunk).count();
      if (length == 0) continue;
      const std::int64_t cuts = full ? cuts_of(length) : 1;
      summary_.cuts += cuts;
      passes = std::max(passes, cuts);
    }
    taken_[{one.queue, one.chunk}] = passes;
    used += passes * one.tokens;
    ++summary_.chunks;
  }
  summary_.share = static_cast<double>(used) / static_cast<double>(cost);
}

std::vector<SuffixCheck::Pass> SuffixCheck::passes(std::int64_t queue, std::int64_t chunk,
                                                   const WindowShape& shape,
                                                   std::span<const ChunkWindow> windows,
                                                   std::span<const std::int32_t> tokens,
                                                   std::span<const std::int32_t> targets) const {
  const auto taken = taken_.find({queue, chunk});
  if (taken == taken_.end()) return {};
  const PhiloxStream draws(check_seed, fmt::format("ttt/check {} {}", queue, chunk));
  std::uint64_t index = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(draws.uniform(index++) * static_cast<double>(bound));
  };
  const auto change = [&](std::int32_t& token) {
    if (vocabulary_ > 1)
      token = static_cast<std::int32_t>((token + 1 + below(vocabulary_ - 1)) % vocabulary_);
  };
  std::vector<Pass> passes(static_cast<std::size_t>(taken->second),
                           {{tokens.begin(), tokens.end()}, {targets.begin(), targets.end()}, {}});
  for (std::size_t slot = 0; slot < windows.size(); ++slot) {
    const ChunkWindow& window = windows[slot];
    if (window.chunk_length == 0) continue;
    const std::int64_t first = std::int64_t(slot) * shape.scored,
                       first_token = std::int64_t(slot) * shape.context;
    const std::int64_t cuts = cuts_of(window.chunk_length), start = below(cuts);
    for (std::int64_t number = 0; number < taken->second; ++number) {
      Pass& pass = passes[static_cast<std::size_t>(number)];
      // When all of its cuts are done, other windows change.
      const bool done = number >= cuts;
      const std::int64_t kept = done ? window.chunk_length : 1 + (start + number) % cuts;
      const std::int64_t losses = done ? kept : kept - 1;
      pass.kept.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(losses),
                           static_cast<std::size_t>(kept)});
      if (done) continue;
      for (std::int64_t i = window.chunk_offset + kept; i < window.window_length; ++i)
        change(pass.tokens[static_cast<std::size_t>(first_token + i)]);
      for (std::int64_t i = losses; i < window.chunk_length; ++i)
        change(pass.targets[static_cast<std::size_t>(first + i)]);
    }
  }
  return passes;
}

void SuffixCheck::compare(std::int64_t queue, std::int64_t chunk, const Pass& pass, const Scores& real,
                          const Scores& changed) {
  const auto same = [&](const std::vector<float>& one, const std::vector<float>& other, std::size_t first,
                        std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      if (std::memcmp(&one[i], &other[i], sizeof(float)) == 0) continue;
      throw InvalidRun(fmt::format(
          "the run is invalid: in batch {}, chunk {}, a score moved from {} to {} when only later "
          "tokens changed, so scores read tokens before they are scored; take another plugin in "
          "[ttt], and where there is none of your own, report this as a bug",
          queue, chunk, one[i], other[i]));
    }
  };
  for (const Kept& kept : pass.kept) {
    same(real.losses, changed.losses, kept.first, kept.losses);
    same(real.normalisers, changed.normalisers, kept.first, kept.normalisers);
    for (std::size_t number = 0; number < real.proposed.size(); ++number)
      same(real.proposed[number], changed.proposed[number], kept.first, kept.normalisers);
  }
}

namespace {

// Token ids for the probe: any will do.
std::vector<std::int32_t> made_up_tokens(std::int64_t count, std::int64_t vocabulary, const char* purpose) {
  const PhiloxStream stream(0, purpose);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(stream.bits(static_cast<std::uint64_t>(i)) %
                                               static_cast<std::uint64_t>(vocabulary)));
  return tokens;
}

// One window with adapters as they are. `every_position`: also in each document another position at a time, and as many
// before it as there are scores.
void probe(WindowProgram& window, std::int64_t vocabulary, const TttPlugin& plugin, bool every_position) {
  const WindowShape shape = window.shape();
  const auto tokens = made_up_tokens(shape.tokens(), vocabulary, "ttt/probe"),
             targets = made_up_tokens(shape.positions(), vocabulary, "ttt/probe targets");
  std::vector<std::int32_t> positions(targets.size());
  const auto losses = [&](const std::vector<std::int32_t>& of) {
    window.set_inputs(of, positions, targets);
    window.forward();
    return window.losses();
  };
  // at(document, i): the position that score number i of a document is of.
  const auto losses_at = [&](const auto& at) {
    for (std::int64_t i = 0; i < shape.positions(); ++i) {
      const std::int64_t document = i / shape.scored;
      positions[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(document * shape.context + at(document, i % shape.scored));
    }
    return losses(tokens);
  };
  // The losses of positions that do not change themselves must be those of before.
  const auto compare = [&](const std::vector<float>& before, const auto& changes) {
    std::vector<std::int32_t> changed = tokens;
    for (std::int64_t i = 0; i < shape.tokens(); ++i) {
      auto& token = changed[static_cast<std::size_t>(i)];
      if (changes(i / shape.context, i % shape.context))
        token = static_cast<std::int32_t>((token + 1) % vocabulary);
    }
    const std::vector<float> after = losses(changed);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::int64_t document = positions[i] / shape.context, position = positions[i] % shape.context;
      if (changes(document, position) || std::memcmp(&before[i], &after[i], sizeof(float)) == 0) continue;
      throw config_error(
          "[ttt.adapters]: with {} the score of position {} of document {} in windows of {} tokens moved "
          "from {} to {} when only later tokens, or other documents, changed, so its scores would be "
          "illegal; use another plugin.",
          plugin.plugin().description(), position, document, shape.context, before[i], after[i]);
    }
  };
  // Positions all over the windows; the first halves must stay the same if second halves change.
  const std::vector<float> before =
      losses_at([&](std::int64_t, std::int64_t i) { return i * shape.context / shape.scored; });
  for (std::int64_t bit = 1; bit == 1 || bit < shape.documents; bit *= 2) {
    for (const bool with : {true, false}) {
      compare(before, [&](std::int64_t document, std::int64_t position) {
        const bool chosen = shape.documents == 1 || ((document & bit) != 0) == with;
        return chosen && position >= shape.context / 2;
      });
    }
  }
  for (std::int64_t first = 0; every_position && first < shape.context; first += shape.documents) {
    const auto last_kept = [&](std::int64_t document) { return (first + document) % shape.context; };
    const std::vector<float> kept = losses_at([&](std::int64_t document, std::int64_t back) {
      return std::max<std::int64_t>(last_kept(document) - back, 0);
    });
    compare(kept,
            [&](std::int64_t document, std::int64_t position) { return position > last_kept(document); });
  }
}

}  // namespace

void probe_causality(AdapterSet& set, const BaseModel& model, const TttPlugin& plugin) {
  set.fill_at_random();
  for (const auto& [shape, window] : set.windows()) {
    const bool unknown = window->unknown_kernels();
    if (unknown || shape == set.windows().rbegin()->first)
      probe(*window, model.config.vocabulary, plugin, unknown);
  }
}

}  // namespace mulligan
