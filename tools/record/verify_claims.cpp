// R01 to R03 and R08: what submission.json states, by itself.
#include <algorithm>
#include <cmath>
#include <set>

#include "framework/core/statistic.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

namespace fs = std::filesystem;
using doctor::Finding;

Finding claims_check(const SubmissionFolder& folder) {
  ClaimCheck check("R01", "what it claims", "a score, author and name", folder.submission.own);
  const Submission& s = folder.submission;
  check.looked();
  const std::set<std::string> oddities(s.oddities.begin(), s.oddities.end());
  for (const std::string& oddity : oddities) check.form(oddity);
  if (!s.val_bpb) check.form("submission.json has no val_bpb");
  if (s.val_bpb && !(*s.val_bpb > 0)) check.form(fmt::format("val_bpb is {}", *s.val_bpb));
  for (const auto& [what, text] :
       {std::pair{"author", &s.author}, std::pair{"github_id", &s.github_id}, std::pair{"name", &s.name}}) {
    if (text->empty()) check.form(fmt::format("submission.json has no {}", what));
  }
  if (!fs::is_regular_file(fs::symlink_status(folder.path / readme_file)))
    check.form("there is no README.md that is a file");
  return check.finish(s.val_bpb ? fmt::format("{} bits per byte", *s.val_bpb) : "no score",
                      "complete submission.json and the folder");
}

Finding seeds_check(const SubmissionFolder& folder) {
  ClaimCheck check("R02", "seeds", "each listed seed has one result", folder.submission.own);
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
  return check.finish(fmt::format("{} seeds, {} results", s.seeds.size(), s.results.size()),
                      "list every run that was made, and no other");
}

// Distance of two means, in bits per byte, that is due to figures with more digits than were published.
constexpr double digits_apart = 1e-5;

namespace {

// The mean and the standard deviation of one figure over the seeds.
void compare_means(ClaimCheck& check, const char* what, const std::vector<double>& values,
                   const std::optional<double>& mean, const std::optional<double>& deviation) {
  const Statistic found = statistic_of(values);
  const std::string name = fmt::format("the mean of {}", what);
  const double tolerance = tolerance_of(*mean), off = std::abs(*mean - found.mean);
  if (off > tolerance && off <= digits_apart) {
    check.looked();
    check.form(fmt::format("{} is claimed to be {}, and that of the published figures is {:.8f}", name, *mean,
                           found.mean));
  } else {
    check.compare<double>(name, mean, found.mean, tolerance, "their mean");
  }
  if (!deviation || !found.deviation) return;
  // Some publish the standard deviation of the seeds as a population (n), which is smaller.
  const double n = static_cast<double>(values.size()), population = *found.deviation * std::sqrt((n - 1) / n);
  const bool other = std::abs(*deviation - population) < std::abs(*deviation - *found.deviation);
  const double nearest = other ? population : *found.deviation;
  const double most = tolerance_of(*deviation), apart = std::abs(*deviation - nearest);
  if (apart > most && apart <= 0.02 * nearest) {
    check.looked();
    return check.form(fmt::format(
        "the standard deviation of {} is claimed to be {}, and that of the published figures is {:.3g}", what,
        *deviation, nearest));
  }
  check.compare<double>(fmt::format("the standard deviation of {}", what), deviation, nearest, most,
                        "that of the seeds");
}

}  // namespace

Finding means_check(const SubmissionFolder& folder) {
  ClaimCheck check("R03", "means over the seeds", "as the seeds' results give them", folder.submission.own);
  const Submission& s = folder.submission;
  const auto compare = [&](const char* what, std::optional<double> SeedResult::*figure,
                           const std::optional<double>& mean, const std::optional<double>& deviation) {
    std::vector<double> values;
    for (const SeedResult& result : s.results) {
      if (result.*figure) values.push_back(*(result.*figure));
    }
    if (mean && !values.empty() && values.size() == s.results.size() && s.results.front().seed)
      compare_means(check, what, values, mean, deviation);
  };
  compare("val_bpb", &SeedResult::val_bpb, s.val_bpb, s.val_bpb_std);
  compare("val_loss", &SeedResult::val_loss, s.val_loss, s.val_loss_std);
  return check.finish("", "state the mean of all runs that were made");
}

constexpr double longest_step = 0.5;  // seconds, of the challenge's scripts

// Each figure as the result claims it, else as its log states it.
Finding rules_check(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  const Budgets budgets = is_ten_minute_track(s.track) ? Budgets{} : s.budgets.value_or(Budgets{});
  ClaimCheck check(rules_id, "the challenge's rules",
                   fmt::format("at most {:g} s, {:g} s, {} bytes", budgets.train_seconds,
                               budgets.eval_seconds, budgets.artifact_bytes),
                   s.own);
  const auto hold = [&](const std::string& what, const auto& used, const auto& log, double limit) {
    if (!used && !log) return check.missing(what + " are not said");
    check.looked();
    const auto most = used ? *used : *log;
    if (!(static_cast<double>(most) <= limit))
      check.wrong(fmt::format("{} are {}, more than {}", what, most, limit));
  };
  // Other tracks than those of ten minutes limit no seconds.
  const bool timed = s.own || (s.track.empty() ? !s.non_record : is_ten_minute_track(s.track));
  const auto hold_seconds = [&](const std::string& what, const std::optional<double>& used,
                                const std::optional<double>& log, double limit) {
    if (!timed)
      return check.unknown(
          fmt::format("the track {} limits no seconds", s.track.empty() ? "non-record" : s.track));
    // The challenge's scripts read the clock after a step, so they may end one step after the limit.
    const auto seconds = used ? used : log;
    if (!s.own && seconds && *seconds > limit && *seconds <= limit + longest_step)
      return check.form(fmt::format("{} are {}, within a step of {}", what, *seconds, limit));
    hold(what, used, log, limit);
  };
  const auto most_bytes = static_cast<double>(budgets.artifact_bytes);
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const SeedResult& result = s.results[i];
    const LogClaims none, &log = folder.log_of(i) ? *folder.log_of(i) : none;
    const std::string whose = " of " + seed_text(result);
    hold("bytes of model and code" + whose, result.artifact_bytes, log.total_bytes, most_bytes);
    hold_seconds("training seconds" + whose, result.train_seconds, log.train_seconds, budgets.train_seconds);
    const auto last = log.scores.empty() ? std::nullopt : log.scores.back().eval_seconds;
    hold_seconds("evaluation seconds" + whose, result.eval_seconds,
                 log.total_eval_seconds ? log.total_eval_seconds : last, budgets.eval_seconds);
  }
  // The figure at the top, if it is not that of a result.
  if (s.bytes_total &&
      std::ranges::find(s.results, s.bytes_total, &SeedResult::artifact_bytes) == s.results.end())
    hold("bytes_total", s.bytes_total, s.bytes_total, most_bytes);
  return check.finish("", "a result beyond a budget is not a record");
}

}  // namespace mulligan::record
