// R09 to R12: the files of the folder.
#include <algorithm>
#include <charconv>
#include <set>

#include "framework/artifact/code_size.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/artifact/text_coder.h"
#include "framework/config/config_report.h"
#include "framework/core/file.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

namespace fs = std::filesystem;
using doctor::Finding;

namespace {

constexpr std::uint64_t largest_source = std::uint64_t{1} << 27;  // bytes, unpacked

// Folders of other programs: the script has the size that was counted or, if its packing is not known, is not so large
// that the artifact exceeds the limit.
void check_script(ClaimCheck& check) {
  if (!check.folder.has("train_gpt.py")) return check.unknown("there is no train_gpt.py");
  const std::uint64_t shipped = fs::file_size(check.folder.path / "train_gpt.py");
  check.each_result([&](const SeedResult& result, const LogClaims& log) {
    const auto counted = result.code_bytes ? result.code_bytes
                         : log.code_bytes  ? log.code_bytes
                                           : check.folder.submission.bytes_code;
    if (!counted)
      return check.unknown(fmt::format("{} does not say how many bytes its code counts", check.whose));
    if (*counted == shipped) return check.looked();
    const std::uint64_t total = log.model_bytes.value_or(0) + shipped;
    if (!log.code_compressed && log.model_bytes && static_cast<double>(total) > Budgets{}.artifact_bytes)
      return check.wrong(
          fmt::format("train_gpt.py has {} bytes, not the {} that {} counts, and with it the artifact has {}",
                      shipped, *counted, check.whose, total));
    check.unknown(
        fmt::format("{} counts {} bytes of code, train_gpt.py has {}: how it was packed is not known",
                    check.whose, *counted, shipped));
  });
}

using Files = std::vector<std::pair<std::string, std::string>>;  // contents by name

// The files of a tar_archive().
Files files_of_tar(std::string_view packed) {
  constexpr std::size_t block = 512;
  const std::string archive = decompress_brotli_within(packed, largest_source);
  Files files;
  for (std::size_t at = 0; at + block <= archive.size() && archive[at] != '\0';) {
    const auto field = [&](std::size_t begin, std::size_t most) {
      const std::string text = archive.substr(at + begin, most);
      return text.substr(0, text.find('\0'));
    };
    const std::string name = field(0, 100), octal = field(124, 12);
    std::size_t size = 0;
    std::from_chars(octal.data(), octal.data() + octal.size(), size, 8);
    at += block;
    files.emplace_back(name, archive.substr(at, size));
    at += (size + block - 1) / block * block;
  }
  if (tar_archive(files) != archive) throw std::runtime_error("is not an archive of mulligan record");
  return files;
}

// The digest of a packed source tree; empty, with a sentence to `check`, where it cannot be read.
std::string packed_digest(ClaimCheck& check, const char* name, Files (*files_of)(std::string_view)) {
  check.looked();
  if (!check.folder.has(name)) return check.wrong(fmt::format("there is no {}", name)), std::string();
  try {
    const Files files = files_of(read_file(check.folder.path / name, largest_source));
    for (const auto& [file, contents] : files) {
      const fs::path path(file);
      if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end())
        throw std::runtime_error("holds '" + file + "', which leads out of the folder where it is unpacked");
    }
    return source_digest(files);
  } catch (const std::runtime_error& error) {
    return check.wrong(fmt::format("{} {}", name, error.what())), std::string();
  }
}

void check_own_source(ClaimCheck& check) {
  const SubmissionFolder& folder = check.folder;
  packed_digest(check, source_file,
                [](std::string_view packed) { return archived_files(unpack_text(packed, largest_source)); });
  if (!folder.has(unpacker_file)) check.wrong(fmt::format("there is no {}", unpacker_file));
  if (folder.has(own_code_file)) packed_digest(check, own_code_file, files_of_tar);
  std::optional<std::uint64_t> shipped = 0;
  for (const char* name : {source_file, unpacker_file, own_code_file})
    if (folder.has(name)) *shipped += fs::file_size(folder.path / name);
  check.compare("bytes_code", folder.submission.bytes_code, shipped, 0, source_file);
  const std::string digest = packed_digest(check, whole_source_file, files_of_tar);
  check.each_result([&](const SeedResult& result, const LogClaims&) {
    check.compare("code_bytes of " + check.whose, result.code_bytes, shipped, 0, source_file);
    if (!digest.empty() && result.digest("source") != digest)
      check.wrong(fmt::format("{} is not the source whose sha256 {} states", whole_source_file, check.whose));
  });
}

}  // namespace

Finding code_check(const SubmissionFolder& folder) {
  ClaimCheck check("R09", "code as it was counted", "the shipped bytes are those counted", folder);
  folder.submission.own ? check_own_source(check) : check_script(check);
  return check.finish("ship the code whose size was counted");
}

Finding sums_check(const SubmissionFolder& folder) {
  ClaimCheck check("R10", "files and their sums", "as listed, and no other", folder);
  const Submission& s = folder.submission;
  for (const std::string& link : folder.links) {
    check.looked();
    check.wrong(fmt::format("'{}' is a link, which may lead out of the folder", link));
  }
  if (s.files.empty()) check.missing("submission.json lists no sums");
  for (const auto& [name, sum] : s.files) {
    check.looked();
    if (fs::path(name).filename() != name || !folder.has(name)) {
      check.wrong(fmt::format("'{}' is listed but is not there", name));
    } else if (sha256_hex_of_file(folder.path / name) != sum) {
      check.wrong(fmt::format("'{}' has been changed: its sha256 is not the one that is listed", name));
    }
  }
  for (const auto& entry : fs::directory_iterator(folder.path)) {
    const std::string name = entry.path().filename().string();
    if (s.own && !s.files.contains(name) && name != submission_file && name != readme_file)
      check.wrong(fmt::format("'{}' is not listed", name));
  }
  return check.finish("get the folder anew, or make it again with mulligan record",
                      s.files.empty() ? "no sums" : "");
}

Finding readme_check(const SubmissionFolder& folder) {
  ClaimCheck check("R11", "figures in README.md", "those of submission.json", folder);
  if (!folder.submission.own) {
    check.unknown("the README of another program is free text");
  } else if (folder.has(readme_file)) {  // R01 tells that there is none
    check.looked();
    const std::string text = read_file(folder.path / readme_file, kLargestDescription);
    if (text.find(readme_figures(folder.submission)) == std::string::npos)
      check.wrong("the table of README.md is not what submission.json gives");
  }
  return check.finish("leave the table of the seeds as mulligan record wrote it");
}

Finding digests_check(const SubmissionFolder& folder) {
  ClaimCheck check("R12", "settings, data and model", "sha256 as in the logs", folder);
  if (!folder.submission.own) {
    check.unknown("folders of other programs state no digests");
    return check.finish("");
  }
  check.each_result([&](const SeedResult& result, const LogClaims& log) {
    check.looked();
    if (!log.file.empty() && (result.digests.empty() || log.digests != result.digests))
      check.wrong(fmt::format("{} states other sha256 than submission.json", check.in_log));
    const auto compare = [&](const char* what, const std::string& name, const std::string& found) {
      if (result.digest(what) != found)
        check.wrong(fmt::format("'{}' is not the {} of {}", name, what, check.whose));
    };
    if (const std::string model = artifact_name(result); folder.has(model))
      compare("artifact", model, sha256_hex_of_file(folder.path / model));
    if (&result == &folder.submission.results.front() &&
        folder.has(config_file))  // R10 tells that there is none
      compare("config", config_file,
              settings_digest(read_file(folder.path / config_file, kLargestDescription)));
  });
  return check.finish("ship what was run: settings, logs and models");
}

}  // namespace mulligan::record
