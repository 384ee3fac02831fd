#include "tools/record/claim_check.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/file.h"

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

// What a log states of the seed counts before its name; first of all counts that it states the result's score.
const LogClaims* find_log(const std::vector<LogClaims>& logs, const SeedResult& result) {
  const auto fit = [&](const LogClaims& log) {
    if (!result.log.empty()) return log.file == result.log ? 1 : 0;
    if (!result.seed) return logs.size() == 1 ? 1 : 0;
    const bool named = !log.seed && seed_of_name(log.file) == result.seed;
    if (log.seed != result.seed && !named) return 0;
    const int said = named ? 2 : log.scores.empty() ? 1 : 3;
    return find_score(log.scores, result.val_bpb) != nullptr ? said + 3 : said;
  };
  const auto best = std::ranges::max_element(logs, {}, fit);
  return best != logs.end() && fit(*best) > 0 ? &*best : nullptr;
}

}  // namespace

double tolerance_of(std::initializer_list<double> figures) {
  std::size_t decimals = 7;  // scripts print eight at most, and a unit of the last one is rounding twice
  for (const double figure : figures) {
    const std::string text = fmt::format("{}.", figure), fraction = text.substr(text.find('.') + 1);
    decimals = std::min(decimals, std::max<std::size_t>(fraction.size(), 5) - 1);
  }
  return 1.0001 * std::pow(10.0, -static_cast<double>(decimals));
}

const LogScore* find_score(const std::vector<LogScore>& scores, const std::optional<double>& claimed) {
  const auto is_claimed = [&](const LogScore& score) {
    return claimed && std::abs(score.val_bpb - *claimed) <= tolerance_of({*claimed, score.val_bpb});
  };
  const auto found = std::ranges::find_if(scores, is_claimed);
  return found == scores.end() ? nullptr : &*found;
}

bool SubmissionFolder::has(const std::string& name) const {
  return fs::is_regular_file(fs::symlink_status(path / name));
}

SubmissionFolder open_submission(const fs::path& path) {
  SubmissionFolder folder;
  folder.path = path;
  const char* lacks = !fs::is_directory(path)        ? "is not a folder"
                      : !folder.has(submission_file) ? "holds no submission.json that is a file"
                                                     : nullptr;
  if (lacks != nullptr) throw data_error("'{}' {}; name the folder of a submission.", path.string(), lacks);
  folder.submission = read_submission(path / submission_file);
  const auto has_seed = [](const SeedResult& result) { return result.seed.has_value(); };
  const bool by_seed = std::ranges::any_of(folder.submission.results, has_seed);
  for (const fs::path& log : find_logs(path, folder.links)) {
    for (LogClaims& run : read_seed_log(read_file(log, kLargestDescription), by_seed)) {
      run.file = log.lexically_relative(path).string();
      folder.logs.push_back(std::move(run));
    }
  }
  if (folder.has(readme_file) && speaks_of_no_record(read_file(path / readme_file, kLargestDescription)))
    folder.submission.non_record = true;
  for (const SeedResult& result : folder.submission.results)
    folder.of.push_back(find_log(folder.logs, result));
  return folder;
}

}  // namespace mulligan::record
