// R04 to R07: claims against the logs.
#include <algorithm>
#include <numbers>
#include <set>

#include "tools/record/claim_check.h"

namespace mulligan::record {

using doctor::Finding;

namespace {

// The mean of the runs in one log that end with a score of the same name; absent for one run.
std::optional<double> mean_of_runs(const std::vector<LogScore>& scores) {
  double sum = 0, runs = 0;
  for (const LogScore& score : scores) {
    if (score.name != scores.back().name) continue;
    sum += score.val_bpb;
    ++runs;
  }
  return runs > 1 ? std::optional(sum / runs) : std::nullopt;
}

// A claim that is none of the scores of quantised models in its log.
void judge_other_score(ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
  const double claimed = *result.val_bpb;
  const std::size_t seeds = check.folder.submission.seeds.size();
  const auto mean = result.seed ? std::nullopt : mean_of_runs(log.scores);
  check.looked();
  if (mean && std::abs(*mean - claimed) <= tolerance_of({claimed})) {
    check.form(
        fmt::format("val_bpb of {} is the mean of the runs in its log, which has no seeds", check.whose));
  } else if (const LogScore* other = find_score(log.other_scores, claimed)) {
    check.form(fmt::format("val_bpb of {} stands in its log as '{}'", check.whose, other->name));
  } else if (!result.seed && seeds > 1) {
    check.form(fmt::format("val_bpb of {} seeds is one figure, and the log is of one of them", seeds));
  } else {
    check.wrong(fmt::format("val_bpb of {} is claimed to be {}, but its log ends with {}", check.whose,
                            claimed, log.scores.back().val_bpb));
  }
}

void compare_scores(ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
  if (log.scores.empty())
    return check.missing(fmt::format("{} ends without a score of a quantised model", check.in_log));
  if (!result.val_bpb) return check.missing(fmt::format("{} claims no val_bpb", check.whose));
  // A log may hold several scores of quantised models; the claim must be one of them, with its loss.
  const LogScore* score = find_score(log.scores, result.val_bpb);
  if (score == nullptr) return judge_other_score(check, result, log);
  check.looked();
  if (!result.val_loss) return;
  check.compare_log("val_loss", result.val_loss, score->val_loss,
                    tolerance_of({*result.val_loss, score->val_loss.value_or(0)}));
  if (!result.tokens || !result.bytes) return;
  const double bpb = *result.val_loss * static_cast<double>(*result.tokens) / std::numbers::ln2 /
                     static_cast<double>(*result.bytes);
  check.compare<double>("val_bpb of " + check.whose, result.val_bpb, bpb, tolerance_of({*result.val_bpb}),
                        "its loss over its bytes");
}

void compare_bytes(ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
  constexpr double line_feed = 1;  // code gains or loses its last one on the way
  check.compare_log("artifact_bytes", result.artifact_bytes, log.total_bytes, line_feed);
  check.compare_log("model_bytes", result.model_bytes, log.model_bytes, 0);
  // Some state the size of the script as it is read, and count the compressed one.
  const bool as_read = result.code_bytes && result.code_bytes == log.code_uncompressed_bytes;
  check.compare_log("code_bytes", result.code_bytes, as_read ? result.code_bytes : log.code_bytes, line_feed);
  if (!log.model_bytes || !log.code_bytes || !log.total_bytes) return;
  check.looked();
  if (*log.model_bytes + *log.code_bytes != *log.total_bytes)
    check.wrong(fmt::format("{}: model {} and code {} are not the total of {} bytes", check.in_log,
                            *log.model_bytes, *log.code_bytes, *log.total_bytes));
}

void compare_seconds(ClaimCheck& check, const SeedResult& result, const LogClaims& log) {
  constexpr double tolerance = 0.5001;  // they are published with one decimal or more, or as whole ones
  check.compare_log("training seconds", result.train_seconds, log.train_seconds, tolerance);
  check.compare_log("steps", result.steps, log.steps, 0);
  // Some count the last score, some all that their script measured, some each score of the quantised model.
  std::vector<double> counts;
  double all = 0;
  for (const LogScore& score : log.scores) all += score.eval_seconds.value_or(0);
  if (!log.scores.empty() && log.scores.back().eval_seconds)
    counts.push_back(*log.scores.back().eval_seconds);
  if (log.total_eval_seconds) counts.push_back(*log.total_eval_seconds);
  if (!counts.empty()) counts.push_back(all);
  const auto apart = [&](double seconds) { return std::abs(seconds - result.eval_seconds.value_or(0)); };
  const auto nearest = std::ranges::min_element(counts, {}, apart);
  check.compare_log("evaluation seconds", result.eval_seconds,
                    nearest == counts.end() ? std::optional<double>() : *nearest, tolerance);
}

Finding against_logs(ClaimCheck check, void (*compare)(ClaimCheck&, const SeedResult&, const LogClaims&)) {
  check.each_result([&](const SeedResult& result, const LogClaims& log) {
    log.file.empty() ? check.unknown(check.whose + " has no log") : compare(check, result, log);
  });
  return check.finish("state what the runs' own logs say, and leave the logs as they are");
}

}  // namespace

Finding logs_check(const SubmissionFolder& folder) {
  ClaimCheck check("R04", "a log of each seed", "one for each result, of its seed", folder);
  std::set<const LogClaims*> used;
  check.each_result([&](const SeedResult& result, const LogClaims& log) {
    check.looked();
    if (log.file.empty())
      return check.form(fmt::format("{} has no log{}", check.whose,
                                    result.log.empty() ? "" : fmt::format(" '{}'", result.log)));
    if (!used.insert(&log).second) check.wrong(fmt::format("'{}' is the log of two seeds", log.file));
    if (result.seed && log.seed && *log.seed != *result.seed)
      check.wrong(fmt::format("'{}' is of seed {}, not {}", log.file, *log.seed, *result.seed));
  });
  return check.finish("put the whole log of every run into the folder",
                      fmt::format("{} logs for {} results", used.size(), folder.of.size()));
}

Finding scores_check(const SubmissionFolder& folder) {
  return against_logs({"R05", "scores in the logs", "equal, to the digits claimed", folder}, compare_scores);
}

Finding bytes_check(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  ClaimCheck check("R06", "bytes in the logs", "equal", folder);
  std::optional<std::uint64_t> largest;
  for (const SeedResult& result : s.results) largest = std::max(largest, result.artifact_bytes);
  // Other programs state other totals under this name.
  if (s.own) check.compare("bytes_total", s.bytes_total, largest, 0, "the largest of the results");
  return against_logs(std::move(check), compare_bytes);
}

Finding seconds_check(const SubmissionFolder& folder) {
  return against_logs({"R07", "seconds and steps in the logs", "equal, to the digits claimed", folder},
                      compare_seconds);
}

}  // namespace mulligan::record
