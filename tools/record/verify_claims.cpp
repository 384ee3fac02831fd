// R01 to R03 and R08: what submission.json states, by itself.
#include <algorithm>
#include <set>

#include "framework/core/statistic.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

using doctor::Finding;

Finding claims_check(const SubmissionFolder& folder) {
  ClaimCheck check("R01", "what it claims", "a score, author and name", folder);
  const Submission& s = folder.submission;
  check.looked();
  const std::set<std::string> oddities(s.oddities.begin(), s.oddities.end());
  for (const std::string& oddity : oddities) check.form(oddity);
  if (!s.val_bpb) check.form("submission.json has no val_bpb");
  if (s.val_bpb && !(*s.val_bpb > 0)) check.form(fmt::format("val_bpb is {}", *s.val_bpb));
  if (s.author.empty()) check.form("submission.json has no author");
  if (s.github_id.empty()) check.form("submission.json has no github_id");
  if (s.name.empty()) check.form("submission.json has no name");
  if (!folder.has(readme_file)) check.form("there is no README.md that is a file");
  return check.finish("complete submission.json and the folder",
                      s.val_bpb ? fmt::format("{} bits per byte", *s.val_bpb) : "no score");
}

Finding seeds_check(const SubmissionFolder& folder) {
  ClaimCheck check("R02", "seeds", "each listed seed has one result", folder);
  const Submission& s = folder.submission;
  std::multiset<std::int64_t> listed(s.seeds.begin(), s.seeds.end()), found;
  for (const SeedResult& result : s.results) {
    if (result.seed) found.insert(*result.seed);
  }
  for (const std::int64_t seed : listed) {
    check.looked();
    if (listed.count(seed) > 1)
      check.wrong(fmt::format("seed {} is listed {} times", seed, listed.count(seed)));
    // Some state one figure for all seeds.
    if (found.empty()) {
      check.form(fmt::format("seed {} has no result of its own", seed));
    } else if (!found.contains(seed)) {
      check.wrong(fmt::format("seed {} has no result", seed));
    }
  }
  for (const std::int64_t seed : found) {
    if (!s.seeds.empty() && !listed.contains(seed))
      check.wrong(fmt::format("seed {} has a result but is not listed", seed));
  }
  if (s.results.empty()) check.form("there is no result of a seed");
  if (s.seeds.empty()) check.unknown("no seeds are listed");
  return check.finish("list every run that was made, and no other",
                      fmt::format("{} seeds, {} results", s.seeds.size(), s.results.size()));
}

namespace {

// A figure over the seeds. It may be `off` by figures with more digits than were published.
void compare_figure(ClaimCheck& check, const std::string& what, double claimed, double found, double off,
                    const char* where) {
  const double tolerance = tolerance_of({claimed}), apart = std::abs(claimed - found);
  if (!(apart > tolerance && apart <= off))
    return check.compare<double>(what, claimed, found, tolerance, where);
  check.looked();
  check.form(fmt::format("{} is claimed to be {}, and that of the published figures is {:.8g}", what, claimed,
                         found));
}

void compare_means(ClaimCheck& check, const std::string& what, std::optional<double> SeedResult::*figure,
                   const std::optional<double>& mean, const std::optional<double>& deviation) {
  std::vector<double> values;
  for (const SeedResult& result : check.folder.submission.results) {
    if (!(result.*figure) || !result.seed) return;
    values.push_back(*(result.*figure));
  }
  if (!mean || values.empty()) return;
  const Statistic found = statistic_of(values);
  compare_figure(check, "the mean of " + what, *mean, found.mean, 1e-5, "their mean");
  if (!deviation || !found.deviation) return;
  // Some publish the standard deviation of the seeds as a population (n), which is smaller.
  const double n = static_cast<double>(values.size()), population = *found.deviation * std::sqrt((n - 1) / n);
  const bool other = std::abs(*deviation - population) < std::abs(*deviation - *found.deviation);
  const double nearest = other ? population : *found.deviation;
  compare_figure(check, "the standard deviation of " + what, *deviation, nearest, 0.02 * nearest,
                 "that of the seeds");
}

}  // namespace

Finding means_check(const SubmissionFolder& folder) {
  ClaimCheck check("R03", "means over the seeds", "as the seeds' results give them", folder);
  const Submission& s = folder.submission;
  compare_means(check, "val_bpb", &SeedResult::val_bpb, s.val_bpb, s.val_bpb_std);
  compare_means(check, "val_loss", &SeedResult::val_loss, s.val_loss, s.val_loss_std);
  return check.finish("state the mean of all runs that were made");
}

// Each figure as the result claims it, else as its log states it.
Finding rules_check(const SubmissionFolder& folder) {
  constexpr double longest_step = 0.5;  // seconds, of the challenge's scripts
  const Submission& s = folder.submission;
  const Budgets budgets = is_ten_minute_track(s.track) ? Budgets{} : s.budgets.value_or(Budgets{});
  ClaimCheck check(rules_id, "the challenge's rules",
                   fmt::format("at most {:g} s, {:g} s, {} bytes", budgets.train_seconds,
                               budgets.eval_seconds, budgets.artifact_bytes),
                   folder);
  const auto hold = [&](const std::string& what, const auto& used, double limit) {
    if (!used) return check.missing(what + " are not said");
    check.looked();
    if (!(static_cast<double>(*used) <= limit))
      check.wrong(fmt::format("{} are {}, more than {}", what, *used, limit));
  };
  // Other tracks than those of ten minutes limit no seconds.
  const bool timed = s.own || (s.track.empty() ? !s.non_record : is_ten_minute_track(s.track));
  const auto hold_seconds = [&](const std::string& what, const std::optional<double>& used, double limit) {
    if (!timed)
      return check.unknown(
          fmt::format("the track {} limits no seconds", s.track.empty() ? "non-record" : s.track));
    // The challenge's scripts read the clock after a step, so they may end one step after the limit.
    if (!s.own && used && *used > limit && *used <= limit + longest_step)
      return check.form(fmt::format("{} are {}, within a step of {}", what, *used, limit));
    hold(what, used, limit);
  };
  const auto either = [](const auto& first, const auto& second) { return first ? first : second; };
  check.each_result([&](const SeedResult& result, const LogClaims& log) {
    const std::string whose = " of " + check.whose;
    const auto last = log.scores.empty() ? std::nullopt : log.scores.back().eval_seconds;
    hold("bytes of model and code" + whose, either(result.artifact_bytes, log.total_bytes),
         budgets.artifact_bytes);
    hold_seconds("training seconds" + whose, either(result.train_seconds, log.train_seconds),
                 budgets.train_seconds);
    hold_seconds("evaluation seconds" + whose,
                 either(result.eval_seconds, either(log.total_eval_seconds, last)), budgets.eval_seconds);
  });
  // The figure at the top, if it is not that of a result.
  if (s.bytes_total &&
      std::ranges::find(s.results, s.bytes_total, &SeedResult::artifact_bytes) == s.results.end())
    hold("bytes_total", s.bytes_total, budgets.artifact_bytes);
  return check.finish("a result beyond a budget is not a record");
}

}  // namespace mulligan::record
