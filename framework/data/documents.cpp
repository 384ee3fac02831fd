#include "framework/data/documents.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/core/error.h"
#include "framework/data/python_random.h"

namespace mulligan {

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
