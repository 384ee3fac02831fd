#include "tools/record/submission_folder.h"

#include <algorithm>
#include <charconv>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/record/submission_readme.h"

namespace mulligan::record {
namespace {

namespace fs = std::filesystem;

bool may_be_log(const fs::path& path) {
  return path.extension() == ".log" || (path.extension() == ".txt" && path.filename() != "requirements.txt");
}

// Reads the logs, and keeps the names of links.
void read_entries(SubmissionFolder& folder) {
  std::vector<fs::path> paths;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(folder.path, options); at != fs::recursive_directory_iterator();
       ++at) {
    if (at->is_symlink()) {
      folder.links.push_back(at->path().lexically_relative(folder.path).string());
    } else if (at.depth() == 0 && may_be_log(at->path()) && at->is_regular_file()) {
      paths.push_back(at->path());
    }
  }
  std::ranges::sort(paths);
  std::ranges::sort(folder.links);
  for (const fs::path& path : paths)
    folder.logs.push_back({path.filename().string(), read_seed_log(read_file(path, kLargestDescription))});
}

// Whether the files are of a kind that only this program makes.
bool has_own_files(const SubmissionFolder& folder) {
  const auto is_file = [&](const char* name) {
    return fs::symlink_status(folder.path / name).type() == fs::file_type::regular;
  };
  if (is_file(source_file) || is_file(whole_source_file)) return true;
  if (std::ranges::any_of(folder.logs, [](const FoundLog& log) { return log.claims.budgets.has_value(); }))
    return true;
  return is_file(readme_file) &&
         read_file(folder.path / readme_file, kLargestDescription).find(figures_begin) != std::string::npos;
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
    throw data_error("'{}' is not a folder; name the folder of a submission, which holds {}.", path.string(),
                     submission_file);
  if (fs::symlink_status(path / submission_file).type() != fs::file_type::regular) {
    throw data_error("'{}' holds no {} that is a file; name the folder of a submission.", path.string(),
                     submission_file);
  }
  SubmissionFolder folder;
  folder.path = path;
  read_entries(folder);
  folder.submission = read_submission(path / submission_file, has_own_files(folder));
  for (const SeedResult& result : folder.submission.results) folder.of.push_back(find_log(folder, result));
  return folder;
}

}  // namespace mulligan::record
