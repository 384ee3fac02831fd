#include "tools/record/submission_folder.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {
namespace {

namespace fs = std::filesystem;

bool named_as_log(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".log" || ending == ".out" || (ending == ".txt" && path.filename() != "requirements.txt");
}

// The files that are logs; names of links go to `links`. If none lies in the folder itself, those in its folders count.
std::vector<fs::path> find_logs(const fs::path& folder, std::vector<std::string>& links) {
  std::vector<fs::path> paths, inner;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(folder, options); at != fs::recursive_directory_iterator(); ++at) {
    if (at->is_symlink()) {
      links.push_back(at->path().lexically_relative(folder).string());
    } else if (at->is_regular_file() && named_as_log(at->path())) {
      (at.depth() == 0 ? paths : inner).push_back(at->path());
    }
  }
  if (paths.empty()) paths = inner;
  std::ranges::sort(paths);
  std::ranges::sort(links);
  return paths;
}

// The logs of a seed: what a log states counts before its name.
std::vector<std::size_t> logs_of_seed(const SubmissionFolder& folder, std::int64_t seed) {
  std::vector<std::size_t> found;
  const auto take = [&](auto is_of_seed) {
    for (std::size_t i = 0; i < folder.logs.size(); ++i)
      if (is_of_seed(folder.logs[i]) && std::ranges::find(found, i) == found.end()) found.push_back(i);
  };
  take([&](const FoundLog& log) { return log.claims.seed == seed && !log.claims.scores.empty(); });
  take([&](const FoundLog& log) { return !log.claims.seed && seed_of_name(log.name) == seed; });
  take([&](const FoundLog& log) { return log.claims.seed == seed; });
  return found;
}

std::optional<std::size_t> find_log(const SubmissionFolder& folder, const SeedResult& result) {
  const std::vector<FoundLog>& logs = folder.logs;
  if (!result.log.empty()) {
    const auto named = std::ranges::find(logs, result.log, &FoundLog::name);
    if (named == logs.end()) return {};
    return static_cast<std::size_t>(named - logs.begin());
  }
  if (!result.seed) return logs.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  const std::vector<std::size_t> found = logs_of_seed(folder, *result.seed);
  if (found.empty()) return {};
  const auto says_score = [&](std::size_t log) {
    return std::ranges::any_of(logs[log].claims.scores, [&](const LogScore& score) {
      return result.val_bpb &&
             std::abs(score.val_bpb - *result.val_bpb) <= tolerance_of(*result.val_bpb, score.val_bpb);
    });
  };
  const auto saying = std::ranges::find_if(found, says_score);
  return saying == found.end() ? found.front() : *saying;
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
    throw data_error("'{}' is not a folder; name the folder of a submission, which holds {}.", path.string(),
                     submission_file);
  if (fs::symlink_status(path / submission_file).type() != fs::file_type::regular) {
    throw data_error("'{}' holds no {} that is a file; name the folder of a submission.", path.string(),
                     submission_file);
  }
  SubmissionFolder folder;
  folder.path = path;
  folder.submission = read_submission(path / submission_file);
  const auto has_seed = [](const SeedResult& result) { return result.seed.has_value(); };
  const bool by_seed = std::ranges::any_of(folder.submission.results, has_seed);
  for (const fs::path& log : find_logs(path, folder.links)) {
    const std::string text = read_file(log, kLargestDescription),
                      name = log.lexically_relative(path).string();
    for (const std::string& run : by_seed ? runs_of_log(text) : std::vector{text})
      folder.logs.push_back({name, read_seed_log(run)});
  }
  if (fs::is_regular_file(fs::symlink_status(path / readme_file)) &&
      speaks_of_no_record(read_file(path / readme_file, kLargestDescription)))
    folder.submission.non_record = true;
  for (const SeedResult& result : folder.submission.results) folder.of.push_back(find_log(folder, result));
  return folder;
}

}  // namespace mulligan::record
