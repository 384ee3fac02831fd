// R04 to R07: claims against the logs.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "framework/artifact/artifact_file.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

using doctor::Finding;

Finding logs_check(const SubmissionFolder& folder) {
  ClaimCheck check("R04", "a log of each seed", "one for each result, of its seed", folder.submission.own);
  const Submission& s = folder.submission;
  std::set<std::size_t> used;
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const SeedResult& result = s.results[i];
    check.looked();
    if (!folder.of[i]) {
      check.form(fmt::format("{} has no log{}", seed_text(result),
                             result.log.empty() ? "" : fmt::format(" '{}'", result.log)));
      continue;
    }
    const FoundLog& log = folder.logs[*folder.of[i]];
    if (!used.insert(*folder.of[i]).second)
      check.wrong(fmt::format("'{}' is the log of two seeds", log.name));
    if (result.seed && log.claims.seed && *log.claims.seed != *result.seed)
      check.wrong(fmt::format("'{}' is of seed {}, not {}", log.name, *log.claims.seed, *result.seed));
  }
  return check.finish(fmt::format("{} logs for {} results", used.size(), s.results.size()),
                      "put the whole log of every run into the folder");
}

namespace {

// Whether a claim is this score of a log.
bool is_score(double score, double claimed, bool own) {
  return std::abs(score - claimed) <= tolerance_of(claimed, score, own);
}

// Whether a claim without a seed is the mean of what several runs in one log end with.
bool is_mean_of_runs(const SeedResult& result, const std::vector<LogScore>& scores, double tolerance) {
  double sum = 0;
  std::size_t runs = 0;
  for (const LogScore& score : scores) {
    if (score.name != scores.back().name) continue;
    sum += score.val_bpb;
    ++runs;
  }
  return !result.seed && runs > 1 && std::abs(sum / static_cast<double>(runs) - *result.val_bpb) <= tolerance;
}

// Scores, bytes and seconds that a result claims, against what its log says. `seeds`: how many are listed.
void compare_scores(ClaimCheck& check, const SeedResult& result, const LogClaims& log, std::size_t seeds,
                    bool own) {
  const std::string whose = seed_text(result), where = fmt::format("the log of {}", whose);
  if (log.scores.empty())
    return check.missing(fmt::format("{} ends without a score of a quantised model", where));
  if (!result.val_bpb) return check.missing(fmt::format("{} claims no val_bpb", whose));
  // A log may hold several scores of quantised models; the claim must be one of them, with its loss.
  const auto score = std::ranges::find_if(
      log.scores, [&](const LogScore& s) { return is_score(s.val_bpb, *result.val_bpb, own); });
  if (score == log.scores.end()) {
    check.looked();
    if (!own && is_mean_of_runs(result, log.scores, tolerance_of(*result.val_bpb, own)))
      return check.form(
          fmt::format("val_bpb of {} is the mean of the runs in its log, which has no seeds", whose));
    const auto other = std::ranges::find_if(
        log.other_scores, [&](const LogScore& s) { return is_score(s.val_bpb, *result.val_bpb, own); });
    if (!own && other != log.other_scores.end())
      return check.form(fmt::format("val_bpb of {} stands in its log as '{}'", whose, other->name));
    if (!own && !result.seed && seeds > 1)
      return check.form(
          fmt::format("val_bpb of {} seeds is one figure, and the log is of one of them", seeds));
    return check.wrong(fmt::format("val_bpb of {} is claimed to be {}, but its log ends with {}", whose,
                                   *result.val_bpb, log.scores.back().val_bpb));
  }
  check.looked();
  if (result.val_loss)
    check.compare<double>("val_loss of " + whose, result.val_loss, score->val_loss,
                          tolerance_of(*result.val_loss, score->val_loss.value_or(0), own), where);
  if (!own) return;
  if (log.scores.size() > 1) check.wrong(fmt::format("{} states {} results", where, log.scores.size()));
  if (!log.contradiction.empty())
    check.wrong(fmt::format("{} states {} in two ways", where, log.contradiction));
  // The line of test-time training itself, and the arithmetic: nats * tokens / ln 2 / bytes.
  check.compare<double>("val_bpb of " + whose, result.val_bpb, log.printed_bpb, 5.1e-6,
                        "test-time training in " + where);
  check.compare("scored tokens of " + whose, result.tokens, log.tokens, 0, where);
  check.compare("scored bytes of " + whose, result.bytes, log.bytes, 0, where);
  const auto printed = [&](const char* what, const std::optional<double>& claimed,
                           const std::optional<double>& found) {
    if (claimed && found) check.compare<double>(what + whose, claimed, found, 5.1e-6, where);
  };
  printed("val_bpb_before_quantisation of ", result.val_bpb_before, log.before_bpb);
  printed("val_bpb_quantised of ", result.val_bpb_quantised, log.quantised_bpb);
  if (!result.val_loss || !result.tokens || !result.bytes)
    return check.wrong(fmt::format("{} does not state what was scored", whose));
  const double bpb = *result.val_loss * static_cast<double>(*result.tokens) / std::numbers::ln2 /
                     static_cast<double>(*result.bytes);
  check.compare<double>("val_bpb of " + whose, result.val_bpb, bpb, 1e-9, "its loss over its bytes");
}

template <typename Compare>
Finding against_logs(const SubmissionFolder& folder, ClaimCheck check, Compare&& compare) {
  for (std::size_t i = 0; i < folder.submission.results.size(); ++i) {
    const SeedResult& result = folder.submission.results[i];
    if (const LogClaims* log = folder.log_of(i)) {
      compare(check, result, *log);
    } else {
      check.unknown(fmt::format("{} has no log", seed_text(result)));
    }
  }
  return check.finish("", "state what the runs' own logs say, and leave the logs as they are");
}

void compare_bytes(ClaimCheck& check, const SeedResult& result, const LogClaims& log, bool own) {
  const double line_feed = own ? 0 : 1;  // others' code gains or loses its last one on the way
  const std::string whose = seed_text(result), where = fmt::format("the log of {}", whose);
  check.compare("artifact_bytes of " + whose, result.artifact_bytes, log.total_bytes, line_feed, where);
  check.compare("model_bytes of " + whose, result.model_bytes, log.model_bytes, 0, where);
  // Some of others state the size of the script as it is read, and count the compressed one.
  const bool as_read = !own && result.code_bytes && result.code_bytes == log.code_uncompressed_bytes;
  check.compare("code_bytes of " + whose, result.code_bytes, as_read ? result.code_bytes : log.code_bytes,
                line_feed, where);
  if (result.artifact_sha256.empty()) {
    check.missing("the sha256 of the artifact of " + whose);
  } else {
    check.looked();
    if (result.artifact_sha256 != log.artifact_sha256)
      check.wrong(fmt::format("the artifact of {} is claimed to have the sha256 {}, but {} says '{}'", whose,
                              result.artifact_sha256, where, log.artifact_sha256));
  }
  if (log.model_bytes && log.code_bytes && log.total_bytes) {
    check.looked();
    if (*log.model_bytes + *log.code_bytes != *log.total_bytes)
      check.wrong(fmt::format("{}: model {} and code {} are not the total of {} bytes", where,
                              *log.model_bytes, *log.code_bytes, *log.total_bytes));
  }
}

// The bytes that stand at the top are the largest of the seeds.
void compare_largest(ClaimCheck& check, const Submission& s) {
  std::optional<std::uint64_t> largest;
  for (const SeedResult& result : s.results) largest = std::max(largest, result.artifact_bytes);
  if (s.own) check.compare("bytes_total", s.bytes_total, largest, 0, "the largest of the results");
}

// A model that lies in the folder is the one that was scored: its sum and its size are the result's, and it can
// be read.
void compare_artifact(ClaimCheck& check, const SubmissionFolder& folder, const SeedResult& result) {
  const std::filesystem::path path = folder.path / artifact_name(result);
  if (!folder.submission.own || !std::filesystem::is_regular_file(std::filesystem::symlink_status(path)))
    return;
  check.looked();
  const std::optional<std::uint64_t> size = std::filesystem::file_size(path);
  check.compare("model_bytes of " + seed_text(result), result.model_bytes, size, 0, artifact_name(result));
  if (sha256_hex_of_file(path) != result.artifact_sha256)
    return check.wrong(fmt::format("'{}' is not the artifact that was scored: its sha256 is another",
                                   artifact_name(result)));
  try {
    read_artifact(path);
  } catch (const Error& error) {
    check.wrong(error.what());
  }
}

// Seconds are published with one decimal or more, or as whole ones.
void compare_seconds(ClaimCheck& check, const SeedResult& result, const LogClaims& log, bool own) {
  const std::string whose = seed_text(result), where = fmt::format("the log of {}", whose);
  const double tolerance = own ? 1e-6 : 0.5001;
  check.compare("training seconds of " + whose, result.train_seconds, log.train_seconds, tolerance, where);
  check.compare("steps of " + whose, result.steps, log.steps, 0, where);
  if (own && result.step_avg_ms && result.steps && result.train_seconds) {
    // Calibration counts as training, and is not a step.
    const double stepped = *result.step_avg_ms * static_cast<double>(*result.steps) / 1000;
    check.looked();
    if (!(stepped <= *result.train_seconds + tolerance))
      check.wrong(fmt::format("{} steps of {} ms of {} are more than its {} s of training", *result.steps,
                              *result.step_avg_ms, whose, *result.train_seconds));
  }
  std::optional<double> eval = log.scores.empty() ? std::nullopt : log.scores.back().eval_seconds;
  // Others count the last score, all that their script measured, or each score of the quantised model.
  const auto nearer = [&](const std::optional<double>& other) {
    if (!own && other && result.eval_seconds &&
        (!eval || std::abs(*other - *result.eval_seconds) < std::abs(*eval - *result.eval_seconds)))
      eval = other;
  };
  nearer(log.total_eval_seconds);
  double all = 0;
  for (const LogScore& score : log.scores) all += score.eval_seconds.value_or(0);
  if (eval) nearer(all);
  check.compare("evaluation seconds of " + whose, result.eval_seconds, eval, tolerance, where);
}

}  // namespace

Finding scores_check(const SubmissionFolder& folder) {
  return against_logs(
      folder, ClaimCheck("R05", "scores in the logs", "equal, to the digits claimed", folder.submission.own),
      [&](ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
        compare_scores(check, result, log, folder.submission.seeds.size(), folder.submission.own);
      });
}

Finding bytes_check(const SubmissionFolder& folder) {
  ClaimCheck check("R06", "bytes in the logs", "equal", folder.submission.own);
  compare_largest(check, folder.submission);
  for (const SeedResult& result : folder.submission.results) compare_artifact(check, folder, result);
  return against_logs(folder, std::move(check),
                      [&](ClaimCheck& bytes, const SeedResult& result, const LogClaims& log) {
                        compare_bytes(bytes, result, log, folder.submission.own);
                      });
}

Finding seconds_check(const SubmissionFolder& folder) {
  return against_logs(folder,
                      ClaimCheck("R07", "seconds and steps in the logs", "equal, to the digits claimed",
                                 folder.submission.own),
                      [&](ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
                        compare_seconds(check, result, log, folder.submission.own);
                      });
}

}  // namespace mulligan::record
