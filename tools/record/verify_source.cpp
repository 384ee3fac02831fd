// R09 of this program's folders, R14: source and settings, against what each run's log says that it was made
// from. An archive is opened: bytes with the right length and sum are not yet the source.
#include <map>
#include <set>

#include "framework/artifact/code_size.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/config/resolved_settings.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "tools/record/claim_check.h"
#include "tools/record/tar_contents.h"

namespace mulligan::record {

namespace fs = std::filesystem;
using doctor::Finding;

namespace {

constexpr std::uint64_t largest_source = std::uint64_t{1}
                                         << 27;  // bytes, unpacked: several times what the tree has

using Files = std::vector<std::pair<std::string, std::string>>;

bool is_file(const fs::path& path) {
  return fs::is_regular_file(fs::symlink_status(path));
}

// The files of a packed archive; absent, with a word to `check`, where it is none.
std::optional<Files> unpack(ClaimCheck& check, const fs::path& path) {
  check.looked();
  const std::string name = path.filename().string();
  if (!is_file(path)) {
    check.wrong(fmt::format("there is no {}", name));
    return {};
  }
  try {
    return tar_contents(decompress_brotli_within(read_file(path, largest_source), largest_source));
  } catch (const std::runtime_error& error) {
    check.wrong(fmt::format("{} {}", name, error.what()));
    return {};
  }
}

// Every log says a digest, and it is `found`.
void compare_logs(ClaimCheck& check, const SubmissionFolder& folder, const char* what,
                  std::string RecordDigests::*digest, const std::string& found) {
  for (std::size_t i = 0; i < folder.submission.results.size(); ++i) {
    const LogClaims* log = folder.log_of(i);
    if (log == nullptr) continue;  // R04 tells that there is none
    check.looked();
    const std::string whose = seed_text(folder.submission.results[i]);
    if (!log->digests) {
      check.wrong(fmt::format("the log of {} does not say what the run was made from", whose));
    } else if ((*log->digests).*digest != found) {
      check.wrong(fmt::format("{} is not what the log of {} says that the run was made from", what, whose));
    }
  }
}

// The source that was counted is part of the source that the runs were made from. What lies outside of its folders
// (the build's own files) is held by the sum in the logs alone.
void compare_sources(ClaimCheck& check, const Files& counted, const Files& whole) {
  const std::map<std::string, std::string> all(whole.begin(), whole.end());
  const auto folder_of = [](const std::string& name) { return name.substr(0, name.find('/')); };
  std::set<std::string> folders;
  for (const auto& [name, text] : whole) folders.insert(folder_of(name));
  for (const auto& [name, text] : counted) {
    if (!folders.contains(folder_of(name))) continue;
    const auto found = all.find(name);
    if (found == all.end() || packed_as(name, found->second) != text)
      return check.wrong(fmt::format("'{}' of {} is not that of {}", name, source_file, whole_source_file));
  }
}

// The data are those that each log says. Older programs say nothing of them, in neither place.
void compare_data(ClaimCheck& check, const SubmissionFolder& folder) {
  const RecordData& stated = folder.submission.data;
  bool known = !stated.empty();
  for (std::size_t i = 0; i < folder.submission.results.size(); ++i) {
    const LogClaims* log = folder.log_of(i);
    if (log == nullptr || (!log->data && stated.empty())) continue;
    known = true;
    check.looked();
    if (!log->data || !(*log->data == stated)) {
      check.wrong(fmt::format("the log of {} says other data than submission.json",
                              seed_text(folder.submission.results[i])));
    }
  }
  // Training compared the same texts under strict rules, unless they are so large that a sample was drawn.
  const std::optional<TextOverlap>& overlap = folder.submission.overlap;
  const bool whole = overlap && overlap->validation_read == overlap->validation_tokens &&
                     overlap->training_read == overlap->training_tokens;
  for (std::size_t i = 0; whole && i < folder.submission.results.size(); ++i) {
    const LogClaims* log = folder.log_of(i);
    if (log == nullptr || log->overlap.empty()) continue;
    check.looked();
    if (log->overlap != overlap->text())
      check.wrong(fmt::format("of training and validation text the log of {} says \"{}\"",
                              seed_text(folder.submission.results[i]), printable(log->overlap)));
  }
  if (!known) check.unknown("neither submission.json nor a log says digests of the data");
}

}  // namespace

Finding own_code_check(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  ClaimCheck check(code_id, code_title, code_threshold, s.own);
  const std::optional<Files> counted = unpack(check, folder.path / source_file),
                             whole = unpack(check, folder.path / whole_source_file);
  if (is_file(folder.path / source_file)) {
    const std::optional<std::uint64_t> shipped = fs::file_size(folder.path / source_file);
    check.compare("bytes_code", s.bytes_code, shipped, 0, source_file);
    for (const SeedResult& result : s.results)
      check.compare("code_bytes of " + seed_text(result), result.code_bytes, shipped, 0, source_file);
    compare_logs(check, folder, source_file, &RecordDigests::evaluation_source,
                 sha256_hex_of_file(folder.path / source_file));
  }
  if (counted && whole) {
    if (counted->empty()) check.wrong(fmt::format("{} holds no file", source_file));
    compare_sources(check, *counted, *whole);
    const std::string digest = source_digest(*whole);
    if (digest != s.source_sha256)
      check.wrong(fmt::format("{} is not the source whose sha256 submission.json states", whole_source_file));
    compare_logs(check, folder, whole_source_file, &RecordDigests::source, digest);
  }
  return check.finish(
      counted && whole ? fmt::format("{} files counted of {}", counted->size(), whole->size()) : "",
      "ship the code whose size was counted, as mulligan record packed it");
}

Finding settings_check(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  ClaimCheck check("R14", "settings as they were run", "config.toml is the first run's", s.own);
  if (!s.own) {
    check.unknown("settings by others are not written as this program reads them");
    return check.finish("", "");
  }
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const LogClaims* log = folder.log_of(i);
    check.looked();
    if (log != nullptr && (!log->digests || log->digests->config != s.results[i].config_sha256))
      check.wrong(
          fmt::format("the log of {} says other settings than submission.json", seed_text(s.results[i])));
  }
  compare_data(check, folder);
  const fs::path path = folder.path / config_file;
  if (!is_file(path)) {
    check.wrong(fmt::format("there is no {}", config_file));
  } else if (s.results.empty() ||
             settings_digest(read_file(path, kLargestDescription)) != s.results[0].config_sha256 ||
             s.config_sha256 != s.results[0].config_sha256) {
    check.wrong(fmt::format("{} is not what the first run was made with", config_file));
  }
  return check.finish("", "ship the settings that were run");
}

}  // namespace mulligan::record
