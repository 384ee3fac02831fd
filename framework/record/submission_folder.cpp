#include "framework/record/submission_folder.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan::record {
namespace {

namespace fs = std::filesystem;

bool may_be_log(const fs::path& path) {
  return path.extension() == ".log" || (path.extension() == ".txt" && path.filename() != "requirements.txt");
}

std::vector<FoundLog> read_logs(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (may_be_log(entry.path()) && entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<FoundLog> logs;
  for (const fs::path& path : paths)
    logs.push_back({path.filename().string(), read_seed_log(read_file(path, kLargestDescription))});
  return logs;
}

std::optional<std::size_t> find_log(const SubmissionFolder& folder, const SeedResult& result) {
  const std::vector<FoundLog>& logs = folder.logs;
  const auto index = [&](auto found) -> std::optional<std::size_t> {
    if (found == logs.end()) return {};
    return static_cast<std::size_t>(found - logs.begin());
  };
  if (!result.log.empty()) return index(std::ranges::find(logs, result.log, &FoundLog::name));
  if (!result.seed) return logs.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  // What a log says of itself counts before what somebody named it.
  const auto saying = index(std::ranges::find_if(logs, [&](const FoundLog& log) {
    return log.claims.seed == result.seed && !log.claims.scores.empty();
  }));
  if (saying) return saying;
  return index(std::ranges::find_if(
      logs, [&](const FoundLog& log) { return !log.claims.seed && seed_of_name(log.name) == result.seed; }));
}

}  // namespace

std::optional<std::int64_t> seed_of_name(const std::string& name) {
  std::size_t at = name.find("seed");
  if (at == std::string::npos) return {};
  at += 4;
  while (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
  std::int64_t seed = 0;
  const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), seed);
  if (error != std::errc() || end == name.data() + at || name[at] == '-') return {};
  return seed;
}

SubmissionFolder open_submission(const fs::path& path) {
  if (!fs::is_directory(path))
    throw data_error("'{}' is no folder; name the folder of a submission, which holds {}.", path.string(),
                     submission_file);
  if (!fs::exists(path / submission_file)) {
    throw data_error("'{}' holds no {}; name the folder of a submission.", path.string(), submission_file);
  }
  SubmissionFolder folder;
  folder.path = path;
  folder.submission = read_submission(path / submission_file);
  folder.logs = read_logs(path);
  for (const SeedResult& result : folder.submission.results) folder.of.push_back(find_log(folder, result));
  return folder;
}

}  // namespace mulligan::record
