#include "framework/run/strict_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/manifest.h"
#include "framework/data/side_table.h"
#include "framework/eval/evaluate.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

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

void add_missing_shards(const ValidationSet& validation, std::vector<std::string>& problems) {
  const std::vector<fs::path>& files = validation.files;
  for (const fs::path& shard : whole_set(files)) {
    const bool scored = std::ranges::any_of(files, [&](const fs::path& file) {
      return folder_of(file) == folder_of(shard) && file.filename() == shard.filename();
    });
    if (scored) continue;
    problems.push_back(
        fmt::format("data.validation leaves out '{}' of the same validation set; name all of its shards",
                    shard.string()));
  }
}

void add_repeated_shards(const ValidationSet& validation, std::vector<std::string>& problems) {
  const std::vector<ShardIdentity>& shards = validation.data.validation.shards;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (shards[i].sha256 != shards[j].sha256) continue;
      problems.push_back(
          fmt::format("the validation shards '{}' and '{}' hold the same tokens; name one of them",
                      validation.files[j].string(), validation.files[i].string()));
    }
  }
}

}  // namespace

std::vector<std::string> strict_validation_problems(const RunConfig& config,
                                                    const ValidationSet& validation) {
  std::vector<std::string> problems;
  add_missing_shards(validation, problems);
  add_repeated_shards(validation, problems);
  if (std::string unproven = unproven_bytes(validation, config.data); !unproven.empty())
    problems.push_back(std::move(unproven));
  if (config.ttt && !validation.tokens.empty() && validation.tokens.front() != validation.bos_id) {
    problems.push_back(fmt::format(
        "the validation shards '{}' begin within a document, whose tokens test-time training does not "
        "score; name its first shard, too",
        config.data.validation));
  }
  return problems;
}

void require_strict_validation(const RunConfig& config, const ValidationSet& validation) {
  if (config.ledger.rules != LedgerRules::strict) return;
  const std::vector<std::string> problems = strict_validation_problems(config, validation);
  if (problems.empty()) return;
  throw data_error(
      "{}; under ledger.rules = \"strict\" a result is of the whole set, whose bytes are certain.",
      fmt::join(problems, "; "));
}

std::string borrowed_start(const RunConfig& config) {
  if (config.init.from.empty()) return {};
  return fmt::format(
      "init.from = '{}' begins with weights that were trained outside of this run's clock; leave it out",
      config.init.from);
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
