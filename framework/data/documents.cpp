#include "framework/data/documents.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "framework/core/error.h"

namespace mulligan {

PythonRandom::PythonRandom(std::uint64_t seed) {
  state_[0] = 19650218u;
  for (std::uint32_t i = 1; i < kStateWords; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  const std::array<std::uint32_t, 2> digits{static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  const std::uint32_t digit_count = digits[1] != 0 ? 2 : 1;
  std::size_t i = 1;
  const auto advance = [&] {
    if (++i == kStateWords) {
      state_[0] = state_[kStateWords - 1];
      i = 1;
    }
  };
  const auto mixed = [&] { return state_[i - 1] ^ (state_[i - 1] >> 30); };
  for (std::uint32_t round = 0; round < kStateWords; ++round) {
    const std::uint32_t digit = round % digit_count;
    state_[i] = (state_[i] ^ (mixed() * 1664525u)) + digits[digit] + digit;
    advance();
  }
  for (std::size_t round = 1; round < kStateWords; ++round) {
    state_[i] = (state_[i] ^ (mixed() * 1566083941u)) - static_cast<std::uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000u;
}

std::uint32_t PythonRandom::next_word() {
  constexpr std::size_t kShift = 397;
  if (next_ == kStateWords) {
    for (std::size_t k = 0; k < kStateWords; ++k) {
      const std::uint32_t joined = (state_[k] & 0x80000000u) | (state_[(k + 1) % kStateWords] & 0x7fffffffu);
      state_[k] =
          state_[(k + kShift) % kStateWords] ^ (joined >> 1) ^ ((joined & 1u) != 0 ? 0x9908b0dfu : 0u);
    }
    next_ = 0;
  }
  std::uint32_t word = state_[next_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

std::uint32_t PythonRandom::below(std::uint32_t bound) {
  const int bits = std::bit_width(bound);
  while (true) {
    const std::uint32_t value = next_word() >> (32 - bits);
    if (value < bound) return value;
  }
}

std::vector<int> PythonRandom::sample(int population, int count) {
  // CPython shuffles a copy of the population when that is smaller than the set of chosen ones would be.
  double set_size = 21;
  if (count > 5) set_size += std::pow(4.0, std::ceil(std::log(count * 3.0) / std::log(4.0)));
  std::vector<int> result;
  if (population <= set_size) {
    std::vector<int> pool(static_cast<std::size_t>(population));
    std::iota(pool.begin(), pool.end(), 0);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t left = static_cast<std::uint32_t>(population - i);
      const std::uint32_t chosen = below(left);
      result.push_back(pool[chosen]);
      pool[chosen] = pool[left - 1];
    }
    return result;
  }
  std::unordered_set<std::uint32_t> seen;
  while (static_cast<int>(result.size()) < count) {
    const std::uint32_t chosen = below(static_cast<std::uint32_t>(population));
    if (seen.insert(chosen).second) result.push_back(static_cast<int>(chosen));
  }
  return result;
}

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

std::optional<std::int64_t> first_document(const Shard& shard, int bos_id) {
  constexpr std::int64_t block_tokens = 1 << 19;
  std::vector<std::uint16_t> block;
  for (std::int64_t begin = 0; begin < shard.token_count(); begin += block_tokens) {
    block.resize(static_cast<std::size_t>(std::min(block_tokens, shard.token_count() - begin)));
    shard.read(begin, block);
    const auto bos = std::ranges::find(block, bos_id);
    if (bos != block.end()) return begin + (bos - block.begin());
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
                                           BatchOrder order) {
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
  if (order == BatchOrder::longest_first) {
    std::stable_sort(batches.begin(), batches.end(), [&](const DocumentBatch& a, const DocumentBatch& b) {
      return length(a.documents.back()) > length(b.documents.back());
    });
  }
  return batches;
}

std::vector<int> sample_documents(int count, double fraction, std::uint64_t seed) {
  if (count < 1 || !(fraction > 0.0 && fraction <= 1.0)) {
    throw config_error("a fraction {} of {} documents cannot be taken; give a fraction above 0 and at most 1",
                       fraction, count);
  }
  // nearbyint rounds halves to even, as Python's round does.
  const int size = std::max(1, static_cast<int>(std::nearbyint(count * fraction)));
  std::vector<int> chosen = PythonRandom(seed).sample(count, size);
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
