#include "framework/data/shared_text.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "framework/core/parallel.h"
#include "framework/data/shard.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t shortest_document = 16;

// Hashes of the whole documents in the first `limit` tokens of a shard. What precedes its first BOS belongs
// to the shard before, and a document that reaches beyond the limit is not whole.
std::vector<std::uint64_t> document_hashes(const Shard& shard, int bos_id, std::int64_t limit) {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(std::min(limit, shard.token_count())));
  shard.read(0, tokens);
  const bool at_end = static_cast<std::int64_t>(tokens.size()) == shard.token_count();
  std::vector<std::uint64_t> hashes;
  auto begin = std::find(tokens.begin(), tokens.end(), bos_id);
  while (begin != tokens.end()) {
    const auto end = std::find(begin + 1, tokens.end(), bos_id);
    if (end == tokens.end() && !at_end) break;
    const auto length = static_cast<std::size_t>(end - begin);
    if (length >= shortest_document) {
      const std::string_view bytes(reinterpret_cast<const char*>(&*begin), length * sizeof(std::uint16_t));
      hashes.push_back(std::hash<std::string_view>()(bytes));
    }
    begin = end;
  }
  return hashes;
}

struct Side {
  std::vector<std::vector<std::uint64_t>> hashes;  // by shard
  bool whole = true;
};

Side hashes_of(const std::vector<fs::path>& files, int bos_id, std::int64_t budget_tokens) {
  Side side;
  side.hashes.resize(files.size());
  std::vector<Shard> shards;
  std::int64_t total = 0;
  for (const fs::path& file : files) total += shards.emplace_back(file).token_count();
  side.whole = total <= budget_tokens;
  const double share = side.whole ? 1.0 : static_cast<double>(budget_tokens) / static_cast<double>(total);
  parallel_for(shards.size(), 0, [&](std::size_t i) {
    const auto limit = side.whole
                           ? shards[i].token_count()
                           : static_cast<std::int64_t>(share * static_cast<double>(shards[i].token_count()));
    side.hashes[i] = document_hashes(shards[i], bos_id, limit);
  });
  return side;
}

}  // namespace

SharedText find_shared_text(const std::vector<fs::path>& train, const std::vector<fs::path>& validation,
                            int bos_id, std::int64_t budget_tokens) {
  const Side scored = hashes_of(validation, bos_id, budget_tokens);
  const Side trained = hashes_of(train, bos_id, budget_tokens);
  SharedText result;
  result.whole = scored.whole && trained.whole;
  std::unordered_set<std::uint64_t> known;
  for (const auto& hashes : scored.hashes) known.insert(hashes.begin(), hashes.end());
  std::unordered_set<std::uint64_t> seen;
  for (const auto& hashes : trained.hashes) {
    result.training_documents += static_cast<std::int64_t>(hashes.size());
    for (const std::uint64_t hash : hashes) {
      if (known.contains(hash)) seen.insert(hash);
    }
  }
  for (const auto& hashes : scored.hashes) {
    result.validation_documents += static_cast<std::int64_t>(hashes.size());
    result.shared += std::ranges::count_if(hashes, [&](std::uint64_t hash) { return seen.contains(hash); });
  }
  return result;
}

std::string shared_text_warning(const SharedText& shared) {
  if (shared.shared == 0) return {};
  return fmt::format(
      "warning: {} of {} validation documents stand word for word among the {} training documents {}, so "
      "the score is partly of text that was trained on; prepare the data again from all of its text, which "
      "drops duplicates",
      shared.shared, shared.validation_documents, shared.training_documents,
      shared.whole ? "as well" : "that were looked at (a sample)");
}

}  // namespace mulligan
