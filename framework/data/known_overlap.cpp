#include "framework/data/known_overlap.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/cache_folder.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"
#include "framework/core/sha256.h"
#include "framework/data/manifest.h"
#include "framework/data/shard_checks.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// Where the overlap of these sets is kept between runs; empty where there is no home for it.
fs::path cache_file(const ShardSetIdentity& training, const ShardSetIdentity& validation,
                    const std::string& tokenizer) {
  const fs::path folder = cache_folder("overlap");
  if (folder.empty()) return {};
  return folder / (sha256_hex(fmt::format("{} {} {} {}", TextOverlap::measure, training.sha256,
                                          validation.sha256, tokenizer)) +
                   ".json");
}

ShardSetIdentity listed(const SplitRecord& split) {
  std::vector<ShardIdentity> shards;
  for (const ShardRecord& shard : split.shards) shards.push_back({shard.file, shard.tokens, shard.sha256});
  return shard_set(std::move(shards));
}

std::optional<TextOverlap> known_overlap(const ShardSetIdentity& training, const ShardSetIdentity& validation,
                                         const std::string& tokenizer, const fs::path& folder) {
  const std::optional<Manifest> manifest = find_manifest(folder);
  if (manifest && manifest->overlap && manifest->tokenizer_sha256 == tokenizer &&
      listed(manifest->train).sha256 == training.sha256 &&
      listed(manifest->validation).sha256 == validation.sha256) {
    return manifest->overlap;
  }
  const fs::path file = cache_file(training, validation, tokenizer);
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) return {};
  try {
    return text_overlap_from_json(parse_json<nlohmann::ordered_json>(read_file(file, kLargestDescription)));
  } catch (const std::exception&) {  // damaged: measured again
    return {};
  }
}

void keep_overlap(const fs::path& file, const TextOverlap& overlap) {
  if (file.empty()) return;
  try {
    fs::create_directories(file.parent_path());
    write_file_atomically(file, to_json(overlap).dump() + "\n");
  } catch (const std::exception&) {  // the next run measures again
  }
}

}  // namespace

TextOverlap find_text_overlap(const std::vector<fs::path>& training, const std::vector<fs::path>& validation,
                              const Tokenizer* tokenizer, const OverlapRanks& ranks) {
  const auto identity = [](const std::vector<fs::path>& files, DataSplit split) {
    ShardUse use;
    use.split = split;
    return check_shards(files, use).identity;
  };
  const ShardSetIdentity trained = identity(training, DataSplit::train);
  const ShardSetIdentity scored = identity(validation, DataSplit::validation);
  const std::string digest = tokenizer ? tokenizer->sha256() : "";
  std::optional<TextOverlap> known;
  if (ranks.rank == 0) known = known_overlap(trained, scored, digest, folder_of(validation.front()));
  if (ranks.ranks > 1) {  // as rank 0 knows it
    const std::string told = ranks.gather(known ? to_json(*known).dump() : "").front();
    if (!told.empty()) known = text_overlap_from_json(parse_json<nlohmann::ordered_json>(told));
  }
  if (known) return *known;
  const TextOverlap overlap = measure_text_overlap(training, validation, tokenizer, ranks);
  if (ranks.rank == 0) keep_overlap(cache_file(trained, scored, digest), overlap);
  return overlap;
}

}  // namespace mulligan
