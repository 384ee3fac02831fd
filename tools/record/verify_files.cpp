// R09 to R12: the files of the folder.
#include <set>

#include "framework/artifact/code_size.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/artifact/text_coder.h"
#include "framework/config/resolved_settings.h"
#include "framework/core/file.h"
#include "tools/record/claim_check.h"
#include "tools/record/submission_readme.h"
#include "tools/record/tar_contents.h"

namespace mulligan::record {

namespace fs = std::filesystem;
using doctor::Finding;

namespace {

constexpr std::uint64_t largest_source = std::uint64_t{1} << 27;  // bytes, unpacked

bool is_file(const fs::path& path) {
  return fs::is_regular_file(fs::symlink_status(path));
}

// Folders of other programs: the script has the size that was counted or, if its packing is not known, is not so large
// that the artifact exceeds the limit.
void check_script(ClaimCheck& check, const SubmissionFolder& folder) {
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

using Files = std::vector<std::pair<std::string, std::string>>;

using Unpack = std::string (*)(std::string_view, std::uint64_t most);

// The digest of a packed source tree, which `unpack` and `take_apart` read; empty, with a sentence to `check`, if they cannot.
std::string packed_source_digest(ClaimCheck& check, const fs::path& path,
                                 Files (*take_apart)(std::string_view) = tar_contents,
                                 Unpack unpack = decompress_brotli_within) {
  check.looked();
  const std::string name = path.filename().string();
  if (!is_file(path)) return check.wrong(fmt::format("there is no {}", name)), std::string();
  try {
    return source_digest(take_apart(unpack(read_file(path, largest_source), largest_source)));
  } catch (const std::runtime_error& error) {
    return check.wrong(fmt::format("{} {}", name, error.what())), std::string();
  }
}

void check_own_source(ClaimCheck& check, const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  packed_source_digest(check, folder.path / source_file, archived_files, unpack_text);
  const fs::path unpacker = folder.path / unpacker_file;
  if (!is_file(unpacker)) check.wrong(fmt::format("there is no {}", unpacker_file));
  if (is_file(folder.path / source_file) && is_file(unpacker)) {
    std::optional<std::uint64_t> shipped = fs::file_size(folder.path / source_file) + fs::file_size(unpacker);
    if (const fs::path own = folder.path / own_code_file; is_file(own)) {
      packed_source_digest(check, own);
      *shipped += fs::file_size(own);
    }
    check.compare("bytes_code", s.bytes_code, shipped, 0, source_file);
    for (const SeedResult& result : s.results)
      check.compare("code_bytes of " + seed_text(result), result.code_bytes, shipped, 0, source_file);
  }
  const std::string digest = packed_source_digest(check, folder.path / whole_source_file);
  for (const SeedResult& result : s.results) {
    const auto stated = result.digests.find("source");
    if (!digest.empty() && (stated == result.digests.end() || stated->second != digest))
      check.wrong(
          fmt::format("{} is not the source whose sha256 {} states", whole_source_file, seed_text(result)));
  }
}

}  // namespace

Finding code_check(const SubmissionFolder& folder) {
  ClaimCheck check("R09", "code as it was counted", "the shipped bytes are those counted",
                   folder.submission.own);
  folder.submission.own ? check_own_source(check, folder) : check_script(check, folder);
  return check.finish("", "ship the code whose size was counted");
}

Finding sums_check(const SubmissionFolder& folder) {
  ClaimCheck check("R10", "files and their sums", "as listed, and no other", folder.submission.own);
  const Submission& s = folder.submission;
  for (const std::string& link : folder.links) {
    check.looked();
    check.wrong(fmt::format("'{}' is a link, which may lead out of the folder", link));
  }
  if (s.files.empty()) check.missing("submission.json lists no sums");
  std::set<std::string> listed = {submission_file, readme_file};
  for (const ShippedFile& file : s.files) {
    listed.insert(file.name);
    check.looked();
    const fs::path path = folder.path / file.name;
    if (file.name.empty() || fs::path(file.name).filename() != file.name || !is_file(path)) {
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

Finding readme_check(const SubmissionFolder& folder) {
  ClaimCheck check("R11", "figures in README.md", "those of submission.json", folder.submission.own);
  const fs::path path = folder.path / readme_file;
  if (!folder.submission.own) {
    check.unknown("the README of another program is free text");
  } else if (is_file(path)) {  // R01 tells that there is none
    check.looked();
    if (read_file(path, kLargestDescription).find(readme_figures(folder.submission)) == std::string::npos)
      check.wrong("the table of README.md is not what submission.json gives");
  }
  return check.finish("", "leave the table of the seeds as mulligan record wrote it");
}

Finding digests_check(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  ClaimCheck check("R12", "settings, data and model", "sha256 as in the logs", s.own);
  if (!s.own) {
    check.unknown("folders of other programs state no digests");
    return check.finish("", "");
  }
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const SeedResult& result = s.results[i];
    const LogClaims* log = folder.log_of(i);
    check.looked();
    if (log != nullptr && (result.digests.empty() || log->digests != result.digests))
      check.wrong(fmt::format("the log of {} states other sha256 than submission.json", seed_text(result)));
    const auto compare = [&](const char* what, const std::string& name, const std::string& found) {
      const auto stated = result.digests.find(what);
      if (stated == result.digests.end() || stated->second != found)
        check.wrong(fmt::format("'{}' is not the {} of {}", name, what, seed_text(result)));
    };
    if (const std::string model = artifact_name(result); is_file(folder.path / model))
      compare("artifact", model, sha256_hex_of_file(folder.path / model));
    if (i == 0 && is_file(folder.path / config_file))  // R10 tells that there is none
      compare("config", config_file,
              settings_digest(read_file(folder.path / config_file, kLargestDescription)));
  }
  return check.finish("", "ship what was run: settings, logs and models");
}

}  // namespace mulligan::record
