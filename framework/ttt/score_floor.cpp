#include "framework/ttt/score_floor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

namespace mulligan {
namespace {

constexpr std::size_t orders = 6;
constexpr double share = 0.5;

struct Context {
  std::uint32_t seen = 0, different = 0;
};

}  // namespace

std::vector<float> compressed_nats(std::span<const std::uint16_t> tokens, std::int64_t vocabulary) {
  std::unordered_map<std::uint64_t, Context> contexts;
  std::unordered_map<std::uint64_t, std::uint32_t> followed;  // by context and token
  std::vector<float> nats(tokens.size(), 0.0F);
  const auto mixed = [](std::uint64_t key, std::uint64_t value) {
    key = (key ^ (value + 0x9E3779B97F4A7C15u)) * 0xFF51AFD7ED558CCDu;
    return key ^ (key >> 32);
  };
  for (std::size_t at = 1; at < tokens.size(); ++at) {
    const std::size_t longest = std::min(at, orders - 1);
    std::array<std::uint64_t, orders> keys{};
    std::uint64_t key = 0;
    double probability = 1.0 / static_cast<double>(vocabulary);
    for (std::size_t order = 0; order <= longest; ++order) {
      if (order > 0) key = mixed(key, tokens[at - order]);
      keys[order] = mixed(key, order);
      const auto context = contexts.find(keys[order]);
      if (context == contexts.end()) continue;
      const auto count = followed.find(mixed(keys[order], tokens[at]));
      const double times = count == followed.end() ? 0 : count->second;
      const double other = context->second.different;
      probability = (times + other * probability) / (context->second.seen + other);
    }
    nats[at] = static_cast<float>(-std::log(probability));
    for (std::size_t order = 0; order <= longest; ++order) {
      Context& context = contexts[keys[order]];
      ++context.seen;
      if (++followed[mixed(keys[order], tokens[at])] == 1) ++context.different;
    }
  }
  return nats;
}

std::string floor_problem(const ScoreBook& book, std::span<const std::uint16_t> tokens,
                          std::span<const float> plain, std::int64_t vocabulary) {
  const auto sum_of = [&](auto&& nats) {
    double sum = 0;
    for (std::size_t target = 1; target < tokens.size(); ++target) {
      if (book.booked(static_cast<std::int64_t>(target))) sum += static_cast<double>(nats(target));
    }
    return sum;
  };
  const double score =
      sum_of([&](std::size_t target) { return book.loss(static_cast<std::int64_t>(target)); });
  if (!plain.empty() && score >= share * sum_of([&](std::size_t target) { return plain[target]; })) return {};
  const std::vector<float> compressed = compressed_nats(tokens, vocabulary);
  const double best = sum_of([&](std::size_t target) {
    return plain.empty() ? compressed[target] : std::min(plain[target], compressed[target]);
  });
  if (score >= share * best) return {};
  return fmt::format(
      "the run is void: its {:.0f} nats are below {:.0f}, half of what the better of the model as it was "
      "and a compressor gives each token, so the plugins of [ttt] know the text from elsewhere; use others",
      score, share * best);
}

}  // namespace mulligan
