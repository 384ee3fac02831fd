// R09 of folders by others, R10: the files of the folder.
#include <set>

#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

namespace fs = std::filesystem;
using doctor::Finding;

namespace {

// Of others: the script as it was counted, or, where its packing cannot be repeated, at least not too large.
void foreign_code(ClaimCheck& check, const SubmissionFolder& folder) {
  const fs::path script = folder.path / "train_gpt.py";
  if (!fs::is_regular_file(script)) return check.unknown("there is no train_gpt.py");
  const std::uint64_t shipped = fs::file_size(script);
  for (std::size_t i = 0; i < folder.submission.results.size(); ++i) {
    const SeedResult& result = folder.submission.results[i];
    const LogClaims none, &log = folder.log_of(i) ? *folder.log_of(i) : none;
    const auto counted = result.code_bytes ? result.code_bytes
                         : log.code_bytes  ? log.code_bytes
                                           : folder.submission.bytes_code;
    const std::string whose = seed_text(result);
    if (!counted) {
      check.unknown(fmt::format("{} does not say how many bytes its code counts", whose));
    } else if (*counted == shipped) {
      check.looked();
    } else if (!log.code_compressed && log.model_bytes &&
               *log.model_bytes + shipped > Budgets{}.artifact_bytes) {
      check.wrong(
          fmt::format("train_gpt.py has {} bytes, not the {} that {} counts, and with it the artifact has {}",
                      shipped, *counted, whose, *log.model_bytes + shipped));
    } else {
      check.unknown(
          fmt::format("{} counts {} bytes of code, train_gpt.py has {}: how it was packed is not known",
                      whose, *counted, shipped));
    }
  }
}

}  // namespace

Finding code_check(const SubmissionFolder& folder) {
  if (folder.submission.own) return own_code_check(folder);
  ClaimCheck check(code_id, code_title, code_threshold, false);
  foreign_code(check, folder);
  return check.finish("", "ship the code whose size was counted");
}

namespace {

// What a folder of this program holds besides submission.json and README.md: what people read elsewhere in it
// is compared nowhere.
std::set<std::string> made_files(const Submission& s) {
  std::set<std::string> names = {source_file, whole_source_file, config_file};
  for (const SeedResult& result : s.results) names.insert({result.log, artifact_name(result)});
  return names;
}

}  // namespace

Finding sums_check(const SubmissionFolder& folder) {
  ClaimCheck check("R10", "files and their sums", "as listed, and no other", folder.submission.own);
  const Submission& s = folder.submission;
  const std::set<std::string> made = made_files(s);
  for (const std::string& link : folder.links) {
    check.looked();
    check.wrong(fmt::format("'{}' is a link, which may lead out of the folder", link));
  }
  if (s.files.empty() && !s.own) check.unknown("submission.json lists no sums");
  if (s.files.empty() && s.own) check.wrong("submission.json lists no files");
  std::set<std::string> listed = {submission_file, readme_file};
  for (const ShippedFile& file : s.files) {
    listed.insert(file.name);
    check.looked();
    if (s.own && !made.contains(file.name))
      check.wrong(
          fmt::format("'{}' is listed, and mulligan record makes no such file", printable(file.name)));
    const fs::path path = folder.path / file.name;
    if (file.name.empty() || fs::path(file.name).filename() != file.name ||
        !fs::is_regular_file(fs::symlink_status(path))) {
      check.wrong(fmt::format("'{}' is listed but is not there", file.name));
    } else if (const std::uint64_t bytes = fs::file_size(path); bytes != file.bytes) {
      check.wrong(fmt::format("'{}' has {} bytes, not the {} that are listed", file.name, bytes, file.bytes));
    } else if (sha256_hex_of_file(path) != file.sha256) {
      check.wrong(fmt::format("'{}' has been changed: its sha256 is not the one that is listed", file.name));
    }
  }
  for (const auto& entry : fs::directory_iterator(folder.path)) {
    if (s.own && !listed.contains(entry.path().filename().string()))
      check.wrong(fmt::format("'{}' is not listed", entry.path().filename().string()));
  }
  return check.finish(s.files.empty() ? "no sums" : "",
                      "get the folder anew, or make it again with mulligan record");
}

}  // namespace mulligan::record
