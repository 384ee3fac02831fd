// R04 to R07: claims against the logs.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

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
bool is_score(double score, double claimed) {
  return std::abs(score - claimed) <= tolerance_of(claimed, score);
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

// The score of `scores` that a claim is; null: none.
const LogScore* find_score(const std::vector<LogScore>& scores, double claimed) {
  const auto found =
      std::ranges::find_if(scores, [&](const LogScore& s) { return is_score(s.val_bpb, claimed); });
  return found == scores.end() ? nullptr : &*found;
}

// A claim that is none of the scores of quantised models in its log. `seeds`: how many are listed.
void judge_other_score(ClaimCheck& check, const SeedResult& result, const LogClaims& log, std::size_t seeds) {
  const std::string whose = seed_text(result);
  check.looked();
  if (is_mean_of_runs(result, log.scores, tolerance_of(*result.val_bpb)))
    return check.form(
        fmt::format("val_bpb of {} is the mean of the runs in its log, which has no seeds", whose));
  if (const LogScore* other = find_score(log.other_scores, *result.val_bpb))
    return check.form(fmt::format("val_bpb of {} stands in its log as '{}'", whose, other->name));
  if (!result.seed && seeds > 1)
    return check.form(fmt::format("val_bpb of {} seeds is one figure, and the log is of one of them", seeds));
  check.wrong(fmt::format("val_bpb of {} is claimed to be {}, but its log ends with {}", whose,
                          *result.val_bpb, log.scores.back().val_bpb));
}

void compare_scores(ClaimCheck& check, const SeedResult& result, const LogClaims& log, std::size_t seeds) {
  const std::string whose = seed_text(result), where = fmt::format("the log of {}", whose);
  if (log.scores.empty())
    return check.missing(fmt::format("{} ends without a score of a quantised model", where));
  if (!result.val_bpb) return check.missing(fmt::format("{} claims no val_bpb", whose));
  // A log may hold several scores of quantised models; the claim must be one of them, with its loss.
  const LogScore* score = find_score(log.scores, *result.val_bpb);
  if (score == nullptr) return judge_other_score(check, result, log, seeds);
  check.looked();
  if (result.val_loss)
    check.compare<double>("val_loss of " + whose, result.val_loss, score->val_loss,
                          tolerance_of(*result.val_loss, score->val_loss.value_or(0)), where);
  if (!result.val_loss || !result.tokens || !result.bytes) return;
  const double bpb = *result.val_loss * static_cast<double>(*result.tokens) / std::numbers::ln2 /
                     static_cast<double>(*result.bytes);
  check.compare<double>("val_bpb of " + whose, result.val_bpb, bpb, tolerance_of(*result.val_bpb),
                        "its loss over its bytes");
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

void compare_bytes(ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
  const double line_feed = 1;  // code gains or loses its last one on the way
  const std::string whose = seed_text(result), where = fmt::format("the log of {}", whose);
  check.compare("artifact_bytes of " + whose, result.artifact_bytes, log.total_bytes, line_feed, where);
  check.compare("model_bytes of " + whose, result.model_bytes, log.model_bytes, 0, where);
  // Some state the size of the script as it is read, and count the compressed one.
  const bool as_read = result.code_bytes && result.code_bytes == log.code_uncompressed_bytes;
  check.compare("code_bytes of " + whose, result.code_bytes, as_read ? result.code_bytes : log.code_bytes,
                line_feed, where);
  if (log.model_bytes && log.code_bytes && log.total_bytes) {
    check.looked();
    if (*log.model_bytes + *log.code_bytes != *log.total_bytes)
      check.wrong(fmt::format("{}: model {} and code {} are not the total of {} bytes", where,
                              *log.model_bytes, *log.code_bytes, *log.total_bytes));
  }
}

// Seconds are published with one decimal or more, or as whole ones.
void compare_seconds(ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
  const std::string whose = seed_text(result), where = fmt::format("the log of {}", whose);
  constexpr double tolerance = 0.5001;
  check.compare("training seconds of " + whose, result.train_seconds, log.train_seconds, tolerance, where);
  check.compare("steps of " + whose, result.steps, log.steps, 0, where);
  std::optional<double> eval = log.scores.empty() ? std::nullopt : log.scores.back().eval_seconds;
  // Some count the last score, some all that their script measured, some each score of the quantised model.
  const auto nearer = [&](const std::optional<double>& other) {
    if (other && result.eval_seconds &&
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
        compare_scores(check, result, log, folder.submission.seeds.size());
      });
}

Finding bytes_check(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  ClaimCheck check("R06", "bytes in the logs", "equal", s.own);
  std::optional<std::uint64_t> largest;
  for (const SeedResult& result : s.results) largest = std::max(largest, result.artifact_bytes);
  // Other programs state other totals under this name.
  if (s.own) check.compare("bytes_total", s.bytes_total, largest, 0, "the largest of the results");
  return against_logs(folder, std::move(check), compare_bytes);
}

Finding seconds_check(const SubmissionFolder& folder) {
  return against_logs(folder,
                      ClaimCheck("R07", "seconds and steps in the logs", "equal, to the digits claimed",
                                 folder.submission.own),
                      compare_seconds);
}

}  // namespace mulligan::record
