#include "framework/data/documents.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <unordered_set>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {

namespace {

// The state of MT19937 that init_by_array makes of the seed's 32-bit digits (Matsumoto and Nishimura 2002). CPython seeds
// integers that way.
struct PythonSeed {
  using result_type = std::uint32_t;
  std::uint64_t seed;

  template <typename Word>
  void generate(Word* state, Word* end) {
    const auto words = static_cast<std::size_t>(end - state);
    state[0] = 19650218u;
    for (std::size_t i = 1; i < words; ++i)
      state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + static_cast<std::uint32_t>(i);
    std::size_t i = 1;
    const auto mix = [&](std::uint32_t factor, std::uint32_t added) {
      state[i] = (state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * factor)) + added;
      if (++i < words) return;
      state[0] = state[words - 1];
      i = 1;
    };
    const std::uint32_t digits[] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    const std::uint32_t digit_count = digits[1] != 0 ? 2 : 1;
    for (std::uint32_t round = 0; round < words; ++round)
      mix(1664525u, digits[round % digit_count] + round % digit_count);
    for (std::size_t round = 1; round < words; ++round) mix(1566083941u, -static_cast<std::uint32_t>(i));
    state[0] = 0x80000000u;
  }
};

// Python's random.Random(seed).sample(range(population), count), in its order; 0 <= count <= population.
std::vector<int> python_sample(std::uint64_t seed, int population, int count) {
  PythonSeed state{seed};
  std::mt19937 words(state);
  const auto below = [&](int bound) {  // by rejection on the bound's bit length
    const int bits = std::bit_width(static_cast<std::uint32_t>(bound));
    while (true) {
      const auto value = static_cast<int>(words() >> (32 - bits));
      if (value < bound) return value;
    }
  };
  // CPython shuffles a copy of the population when that is smaller than the set of chosen ones would be.
  double set_size = 21;
  if (count > 5) set_size += std::pow(4.0, std::ceil(std::log(count * 3.0) / std::log(4.0)));
  std::vector<int> result;
  if (population <= set_size) {
    std::vector<int> pool(static_cast<std::size_t>(population));
    std::iota(pool.begin(), pool.end(), 0);
    for (; count > 0; --count) {
      int& chosen = pool[static_cast<std::size_t>(below(static_cast<int>(pool.size())))];
      result.push_back(std::exchange(chosen, pool.back()));
      pool.pop_back();
    }
    return result;
  }
  std::unordered_set<int> seen;
  while (static_cast<int>(result.size()) < count) {
    const int chosen = below(population);
    if (seen.insert(chosen).second) result.push_back(chosen);
  }
  return result;
}

}  // namespace

std::vector<Document> find_documents(std::span<const std::uint16_t> tokens, int bos_id) {
  std::vector<Document> documents;
  const auto count = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (tokens[static_cast<std::size_t>(i)] != bos_id) continue;
    if (!documents.empty()) documents.back().length = i + 1 - documents.back().start;
    documents.push_back({i, count - i});
  }
  return documents;
}

std::optional<std::int64_t> first_document(const Shard& shard, int bos_id, std::int64_t from,
                                           std::int64_t until) {
  constexpr std::int64_t block_tokens = 1 << 16;
  until = std::min(until, shard.token_count());
  std::vector<std::uint16_t> block;
  for (; from < until; from += block_tokens) {
    block.resize(static_cast<std::size_t>(std::min(block_tokens, until - from)));
    shard.read(from, block);
    const auto bos = std::ranges::find(block, bos_id);
    if (bos != block.end()) return from + (bos - block.begin());
  }
  return {};
}

bool documents_begin(const std::vector<std::filesystem::path>& shards, int bos_id) {
  return std::ranges::any_of(shards, [&](const std::filesystem::path& file) {
    return first_document(Shard(file), bos_id).has_value();
  });
}

std::int64_t whole_rows_length(std::int64_t count, std::int64_t row_tokens) {
  return count <= row_tokens ? 0 : (count - 1) / row_tokens * row_tokens + 1;
}

std::vector<DocumentBatch> batch_documents(std::span<const Document> documents, int batch_size,
                                           DocumentOrder order) {
  if (batch_size < 1)
    throw config_error("a batch of {} documents is not possible; give at least 1", batch_size);
  const auto length = [&](int document) { return documents[static_cast<std::size_t>(document)].length; };
  std::vector<int> ascending(documents.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  std::stable_sort(ascending.begin(), ascending.end(), [&](int a, int b) { return length(a) < length(b); });

  std::vector<DocumentBatch> batches;
  for (auto begin = ascending.begin(); begin != ascending.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(batch_size, ascending.end() - begin);
    batches.push_back({static_cast<int>(batches.size()), {begin, end}});
    begin = end;
  }
  if (order == DocumentOrder::longest_first) {
    std::stable_sort(batches.begin(), batches.end(), [&](const DocumentBatch& a, const DocumentBatch& b) {
      return length(a.documents.back()) > length(b.documents.back());
    });
  }
  return batches;
}

std::vector<int> sample_documents(int count, double fraction, std::uint64_t seed) {
  config_error_if(count < 1 || !(fraction > 0.0 && fraction <= 1.0),
                  "a fraction {} of {} documents cannot be taken; give a fraction above 0 and at most 1",
                  fraction, count);
  // nearbyint rounds halves to even, as Python's round does.
  const int size = std::max(1, static_cast<int>(std::nearbyint(count * fraction)));
  std::vector<int> chosen = python_sample(seed, count, size);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::int64_t chunk_count(std::int64_t predicted, std::int64_t chunk_tokens) {
  return (predicted + chunk_tokens - 1) / chunk_tokens;
}

ChunkWindow chunk_window(std::int64_t predicted, std::int64_t chunk_tokens, std::int64_t window_tokens,
                         std::int64_t index) {
  const std::int64_t chunk_start = index * chunk_tokens;
  const std::int64_t chunk_end = std::min(predicted, chunk_start + chunk_tokens);
  const std::int64_t window_start = std::max<std::int64_t>(0, chunk_end - window_tokens);
  return {window_start, chunk_end - window_start, chunk_start - window_start, chunk_end - chunk_start};
}

}  // namespace mulligan
