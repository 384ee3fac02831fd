// What a token stream looks like from outside: entropies, commonest and unknown tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace mulligan {

// Of one stream; pieces of it (samples) follow one another as if they were one.
struct TokenStatistics {
  std::uint64_t tokens = 0;
  std::uint64_t outside = 0;  // ids at or above the vocabulary; not part of the rest
  std::uint64_t distinct = 0;
  double unigram_nats = 0;  // entropy of the ids
  double bigram_nats =
      0;  // entropy of an id given the one before, of the sample: an underestimate where it is small
  int commonest = 0;  // id
  double commonest_share = 0;
  double repeat_share = 0;    // share of tokens that equal the one before
  std::vector<double> share;  // [vocabulary] of each id
};

// `pieces` hold consecutive tokens each; a pair is never taken over the edge of a piece. Throws
// std::invalid_argument for no tokens or a vocabulary below 1; one above 65,536 counts as that, since ids
// have 16 bits.
TokenStatistics token_statistics(std::span<const std::vector<std::uint16_t>> pieces, int vocabulary);

// Consecutive tokens out of the shards: all of them where they are at most `budget` together, otherwise equal
// pieces of 65,536 tokens at even distances over the whole, the first at the first shard's beginning and the
// last at the last shard's end. The order of `shards` counts. Throws data_error for bad shards.
std::vector<std::vector<std::uint16_t>> sample_tokens(const std::vector<std::filesystem::path>& shards,
                                                      std::uint64_t budget);

}  // namespace mulligan
