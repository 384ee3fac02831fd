#include "framework/run/strict_rules.h"

#include <algorithm>
#include <set>

#include "framework/core/error.h"
#include "framework/data/manifest.h"
#include "framework/data/side_table.h"
#include "framework/eval/validation_bytes.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// "fineweb_val_" of fineweb_val_000001.bin, by which the other shards of a published set are known; "" without
// such a name.
std::string set_name(const fs::path& shard) {
  const std::string name = shard.filename().string();
  const std::size_t mark = name.rfind("_val_");
  return mark == std::string::npos ? "" : name.substr(0, mark + 5);
}

// The shards that belong to the same set as one of `files`, by the manifest next to it and by their names.
std::set<fs::path> whole_set(const std::vector<fs::path>& files) {
  std::set<fs::path> set;
  std::set<std::pair<fs::path, std::string>> seen;
  for (const fs::path& file : files) {
    const fs::path folder = folder_of(file);
    const std::string name = set_name(file);
    if (!seen.emplace(folder, name).second) continue;
    if (const std::optional<Manifest> manifest = find_manifest(folder)) {
      for (const ShardRecord& record : manifest->validation.shards) set.insert(folder / record.file);
    }
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !name.empty() && !failed && entry != end;
         entry.increment(failed)) {
      const fs::path& other = entry->path();
      if (other.extension() == ".bin" && set_name(other) == name && !names_side_table(other))
        set.insert(folder / other.filename());
    }
  }
  return set;
}

void require_every_shard(const ValidationSet& validation) {
  const std::vector<fs::path>& files = validation.files;
  for (const fs::path& shard : whole_set(files)) {
    const bool scored = std::ranges::any_of(files, [&](const fs::path& file) {
      return folder_of(file) == folder_of(shard) && file.filename() == shard.filename();
    });
    if (scored) continue;
    throw data_error(
        "data.validation leaves out '{}' of the same validation set, and under ledger.rules = \"strict\" a "
        "result is of the whole set; name all of its shards.",
        shard.string());
  }
}

void require_each_shard_once(const ValidationSet& validation) {
  const std::vector<ShardIdentity>& shards = validation.data.validation.shards;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (shards[i].sha256 != shards[j].sha256) continue;
      throw data_error(
          "the validation shards '{}' and '{}' hold the same tokens, and under "
          "ledger.rules = \"strict\" each is scored once; name one of them.",
          validation.files[j].string(), validation.files[i].string());
    }
  }
}

}  // namespace

void require_strict_validation(const RunConfig& config, const ValidationSet& validation) {
  if (config.ledger.rules != LedgerRules::strict) return;
  require_every_shard(validation);
  require_each_shard_once(validation);
  if (const std::string unproven = unproven_bytes(validation, config.data); !unproven.empty())
    throw data_error("{}; under ledger.rules = \"strict\" no result is taken on such data.", unproven);
  if (!config.ttt || validation.tokens.empty() || validation.tokens.front() == validation.bos_id) return;
  throw data_error(
      "the validation shards '{}' begin within a document, whose tokens test-time training does not "
      "score, and under ledger.rules = \"strict\" a result is of the whole set; name its first shard, too.",
      config.data.validation);
}

std::string partial_score(const EvalResult& score) {
  const std::uint64_t set = score.data.validation.tokens;  // the first has nothing before it to be told by
  if (set == 0 || score.tokens + 1 >= set) return {};
  return fmt::format("it is of {} tokens, and {} of the validation set were not scored", score.tokens,
                     set - 1 - score.tokens);
}

void require_whole_score(const LedgerConfig& limits, const EvalResult& score) {
  if (limits.rules != LedgerRules::strict) return;
  const std::string reason = partial_score(score);
  if (reason.empty()) return;
  throw run_error("{}; under ledger.rules = \"strict\" the result is refused as a record.", reason);
}

}  // namespace mulligan
