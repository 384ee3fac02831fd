#include "framework/data/token_statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "framework/data/shard.h"

namespace mulligan {
namespace {

double entropy_of(std::span<const std::uint64_t> counts, double total) {
  double entropy = 0;
  for (const std::uint64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / total;
    entropy -= share * std::log(share);
  }
  return entropy;
}

// Entropy of a pair, less that of its first token: both over the pairs that were seen.
double conditional_entropy(std::vector<std::uint32_t>& pairs, std::size_t vocabulary) {
  if (pairs.empty()) return 0;
  std::ranges::sort(pairs);
  std::vector<std::uint64_t> counts, firsts(vocabulary, 0);
  for (std::size_t i = 0; i < pairs.size();) {
    std::size_t end = i;
    while (end < pairs.size() && pairs[end] == pairs[i]) ++end;
    counts.push_back(end - i);
    firsts[pairs[i] >> 16] += end - i;
    i = end;
  }
  const auto total = static_cast<double>(pairs.size());
  return std::max(0.0, entropy_of(counts, total) - entropy_of(firsts, total));
}

}  // namespace

TokenStatistics token_statistics(std::span<const std::vector<std::uint16_t>> pieces, int vocabulary) {
  if (vocabulary < 1) throw std::invalid_argument("a vocabulary of at least 1");
  const auto size = static_cast<std::size_t>(std::min(vocabulary, kMaxVocabulary));  // ids have 16 bits
  TokenStatistics found;
  std::vector<std::uint64_t> counts(size, 0);
  std::vector<std::uint32_t> pairs;
  std::uint64_t inside = 0, repeats = 0;
  for (const std::vector<std::uint16_t>& piece : pieces) {
    found.tokens += piece.size();
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (piece[i] >= size) {
        ++found.outside;
        continue;
      }
      ++inside;
      ++counts[piece[i]];
      if (i == 0 || piece[i - 1] >= size) continue;
      pairs.push_back(std::uint32_t{piece[i - 1]} << 16 | piece[i]);
      repeats += piece[i] == piece[i - 1];
    }
  }
  if (found.tokens == 0) throw std::invalid_argument("statistics of tokens need tokens");
  const auto total = static_cast<double>(std::max<std::uint64_t>(inside, 1));
  found.distinct =
      static_cast<std::uint64_t>(std::ranges::count_if(counts, [](auto count) { return count > 0; }));
  found.unigram_nats = entropy_of(counts, total);
  const auto most = std::ranges::max_element(counts);
  found.commonest = static_cast<int>(most - counts.begin());
  found.commonest_share = static_cast<double>(*most) / total;
  found.repeat_share = pairs.empty() ? 0 : static_cast<double>(repeats) / static_cast<double>(pairs.size());
  found.bigram_nats = conditional_entropy(pairs, size);
  for (const std::uint64_t count : counts) found.share.push_back(static_cast<double>(count) / total);
  return found;
}

std::vector<std::vector<std::uint16_t>> sample_tokens(const std::vector<std::filesystem::path>& shards,
                                                      std::uint64_t budget) {
  constexpr std::uint64_t piece_tokens = 65'536;
  const std::vector<Shard> opened(shards.begin(), shards.end());
  std::uint64_t total = 0;
  for (const Shard& shard : opened) total += static_cast<std::uint64_t>(shard.token_count());
  std::vector<std::vector<std::uint16_t>> pieces;
  if (total <= budget) {
    for (const Shard& shard : opened) pieces.push_back(shard.read_all());
    return pieces;
  }
  const std::uint64_t count = std::max<std::uint64_t>(1, budget / piece_tokens);
  for (std::uint64_t piece = 0; piece < count; ++piece) {
    const double share = count == 1 ? 0 : static_cast<double>(piece) / static_cast<double>(count - 1);
    auto at = static_cast<std::uint64_t>(share * static_cast<double>(total - std::min(total, piece_tokens)));
    for (const Shard& shard : opened) {  // the one that holds token `at` of all
      const auto size = static_cast<std::uint64_t>(shard.token_count());
      if (at >= size) {
        at -= size;
        continue;
      }
      pieces.emplace_back(std::min(piece_tokens, size - at));
      shard.read(static_cast<std::int64_t>(at), pieces.back());
      break;
    }
  }
  return pieces;
}

}  // namespace mulligan
