// R12: what people read: the figures of README.md, and scores that free text claims.
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tools/record/claim_check.h"
#include "tools/record/prose_scores.h"
#include "tools/record/submission_readme.h"

namespace mulligan::record {

namespace fs = std::filesystem;
using doctor::Finding;

namespace {

void add_numbers(const nlohmann::ordered_json& json, std::vector<double>& numbers) {
  if (json.is_number()) numbers.push_back(json.get<double>());
  if (json.is_structured()) {
    for (const auto& part : json) add_numbers(part, numbers);
  }
}

// The settings that were run, without the comments.
std::string settings_text(const fs::path& config) {
  if (!fs::is_regular_file(fs::symlink_status(config))) return {};
  std::string settings;
  bool comment = false;
  for (const char c : read_file(config, kLargestDescription)) {
    comment = c == '#' || (comment && c != '\n');
    if (!comment) settings += c;
  }
  return settings;
}

KnownFigures known_figures(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  KnownFigures known;
  constexpr double none = std::numeric_limits<double>::infinity();
  known.best_bpb = known.best_loss = none;
  const auto take = [&](const std::optional<double>& score) {
    if (score) known.scores.push_back(*score);
  };
  for (const SeedResult& result : s.results) {
    known.best_bpb = std::min(known.best_bpb, result.val_bpb.value_or(none));
    known.best_loss = std::min(known.best_loss, result.val_loss.value_or(none));
    for (const auto& score :
         {result.val_bpb, result.val_loss, result.val_bpb_before, result.val_bpb_quantised})
      take(score);
  }
  for (const auto& score : {s.val_bpb, s.val_loss, s.val_bpb_std, s.val_loss_std}) take(score);
  if (s.comparison) {
    known.scores.insert(known.scores.end(), s.comparison->reference_bpb.begin(),
                        s.comparison->reference_bpb.end());
    for (const double score :
         {s.comparison->difference_bpb, s.comparison->difference_nats, s.comparison->margin_nats})
      take(score);
  }
  known.all = numbers_of(settings_text(folder.path / config_file));
  known.all.insert(known.all.end(), known.scores.begin(), known.scores.end());
  add_numbers(submission_json(s), known.all);
  return known;
}

// Free text of a folder of this program claims no better score than was measured.
void compare_prose(ClaimCheck& check, const SubmissionFolder& folder, std::string readme) {
  const Submission& s = folder.submission;
  const std::string figures = readme_figures(s);
  if (const std::size_t at = readme.find(figures); at != std::string::npos)
    readme.replace(at, figures.size(), "\n");
  const KnownFigures known = known_figures(folder);
  const auto look = [&](const char* where, std::string_view text, bool heading) {
    const std::vector<std::string> found = better_scores(text, known, heading);
    if (found.empty()) return;
    check.wrong(fmt::format(
        "{} says {}, which reads as a better score than the {:.5f} bits per byte ({:.5f} nats per token) of the best "
        "seed, and is no figure of submission.json",
        where, fmt::join(found, ", "), known.best_bpb, known.best_loss));
  };
  look("README.md outside of the measured part", readme, false);
  look("the name", s.name, true);
  look("the blurb", s.blurb, false);
  look("the hardware", s.hardware, false);
  if (s.comparison) look("the name of the reference", s.comparison->name, true);
}

}  // namespace

Finding readme_check(const SubmissionFolder& folder) {
  ClaimCheck check("R12", "figures in README.md", "those of submission.json", folder.submission.own);
  const fs::path path = folder.path / readme_file;
  constexpr std::uint64_t longest = std::uint64_t{1} << 20;
  if (!folder.submission.own) {
    check.unknown("a README by others is free text");
  } else if (fs::is_regular_file(fs::symlink_status(path))) {
    check.looked();
    if (fs::file_size(path) > longest) {
      check.wrong("README.md has more than 1 MiB");
      return check.finish("", "make it shorter");
    }
    const std::string readme = read_file(path),
                      fault = figures_fault(readme, readme_figures(folder.submission));
    if (!fault.empty()) check.wrong("the measured part of README.md " + fault);
    compare_prose(check, folder, readme);
  }
  return check.finish(
      "",
      "leave the part between the comment lines as mulligan record wrote it, and name scores of "
      "others by --reference alone");
}

}  // namespace mulligan::record
