// R01 to R03, R08, R11, R13: what submission.json says, by itself.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/statistic.h"
#include "tools/record/claim_check.h"
#include "tools/record/make_submission.h"

namespace mulligan::record {

namespace fs = std::filesystem;
using doctor::Finding;

namespace {

// YYYY-MM-DD, a day of the calendar that has begun somewhere.
bool is_past_day(const std::string& date) {
  int year = 0, month = 0, day = 0, end = 0;
  if (date.size() != 10 || std::sscanf(date.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &end) != 3 ||
      end != 10)
    return false;
  using namespace std::chrono;
  const year_month_day given{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                             std::chrono::day(static_cast<unsigned>(day))};
  return given.ok() && sys_days(given) <= floor<days>(system_clock::now()) + days(1);
}

}  // namespace

Finding claims_check(const SubmissionFolder& folder) {
  ClaimCheck check("R01", "what it claims", "a score, author and name", folder.submission.own);
  const Submission& s = folder.submission;
  check.looked();
  if (s.own && !s.stated_format)
    check.wrong(
        "submission.json does not state its format, though fields or files are those of mulligan record");
  if (!s.unwritten.empty())
    check.wrong(fmt::format("submission.json says {}, which mulligan record does not write, or not so",
                            printable(s.unwritten)));
  if (s.own && !s.date.empty() && !is_past_day(s.date))
    check.wrong(fmt::format("the date '{}' is not a past day (YYYY-MM-DD)", printable(s.date)));
  if (s.own) {
    try {
      require_track(s.track, {});
    } catch (const Error&) {
      check.wrong(fmt::format("the track '{}' has other characters than letters, digits and _.-",
                              printable(s.track)));
    }
  }
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
    // Others state one figure for all seeds, too.
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

// Bits per byte that nobody means by a difference of two means.
constexpr double digits_apart = 1e-5;

Finding means_check(const SubmissionFolder& folder) {
  ClaimCheck check("R03", "means over the seeds", "as the seeds' results give them", folder.submission.own);
  const Submission& s = folder.submission;
  std::vector<double> bpb, loss;
  for (const SeedResult& result : s.results) {
    if (result.val_bpb) bpb.push_back(*result.val_bpb);
    if (result.val_loss) loss.push_back(*result.val_loss);
  }
  const auto compare = [&](const char* what, const std::vector<double>& values,
                           const std::optional<double>& mean, const std::optional<double>& deviation) {
    if (!mean || values.size() != s.results.size() || !s.results.front().seed) return;
    const Statistic found = statistic_of(values);
    const std::string name = fmt::format("the mean of {}", what);
    const double tolerance = tolerance_of(*mean, s.own), off = std::abs(*mean - found.mean);
    // Others make it from figures with more digits than they publish.
    if (!s.own && off > tolerance && off <= digits_apart) {
      check.looked();
      check.form(fmt::format("{} is claimed to be {}, and that of the published figures is {:.8f}", name,
                             *mean, found.mean));
    } else {
      check.compare<double>(name, mean, found.mean, tolerance, "their mean");
    }
    if (!deviation || !found.deviation) return;
    // Some publish the deviation of the seeds as a population (n), which is smaller.
    const double n = static_cast<double>(values.size()),
                 population = *found.deviation * std::sqrt((n - 1) / n);
    const double most = tolerance_of(*deviation, s.own);
    const bool other = !s.own && std::abs(*deviation - population) < std::abs(*deviation - *found.deviation);
    const double nearest = other ? population : *found.deviation;
    if (!s.own && std::abs(*deviation - nearest) > most && std::abs(*deviation - nearest) <= 0.02 * nearest) {
      check.looked();
      return check.form(
          fmt::format("the deviation of {} is claimed to be {}, and that of the published figures is {:.3g}",
                      what, *deviation, nearest));
    }
    check.compare<double>(fmt::format("the deviation of {}", what), deviation, nearest, most,
                          "that of the seeds");
  };
  if (!s.results.empty()) {
    compare("val_bpb", bpb, s.val_bpb, s.val_bpb_std);
    compare("val_loss", loss, s.val_loss, s.val_loss_std);
  }
  return check.finish("", "state the mean of all runs that were made");
}

constexpr double longest_step = 0.5;  // seconds, of the challenge's scripts

// Each figure as the result claims it, else as its log says it.
Finding rules_check(const SubmissionFolder& folder) {
  const Submission& s = folder.submission;
  const Budgets budgets = s.budgets.value_or(Budgets{});
  ClaimCheck check(rules_id, "the challenge's rules",
                   fmt::format("at most {:g} s, {:g} s, {} bytes", budgets.train_seconds,
                               budgets.eval_seconds, budgets.artifact_bytes),
                   folder.submission.own);
  const auto hold = [&](const std::string& what, const std::optional<double>& used, double limit) {
    if (!used) return check.missing(what + " are not said");
    check.looked();
    if (!(*used <= limit)) check.wrong(fmt::format("{} are {}, more than {}", what, *used, limit));
  };
  // Other tracks than those of ten minutes limit no seconds, whoever names them.
  const bool timed = s.own || (s.track.empty() ? !s.non_record : s.track.find("10min") != std::string::npos);
  const auto hold_seconds = [&](const std::string& what, const std::optional<double>& used, double limit) {
    if (!timed)
      return check.unknown(
          fmt::format("the track {} limits no seconds", s.track.empty() ? "non-record" : s.track));
    // The challenge's scripts read the clock after a step, so they may end one step after the limit.
    if (!s.own && used && *used > limit && *used <= limit + longest_step)
      return check.form(fmt::format("{} are {}, within a step of {}", what, *used, limit));
    hold(what, used, limit);
  };
  const auto number = [](const auto& value) {
    return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
  };
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const SeedResult& result = s.results[i];
    const LogClaims none, &log = folder.log_of(i) ? *folder.log_of(i) : none;
    const std::string whose = " of " + seed_text(result);
    hold("bytes of model and code" + whose,
         number(result.artifact_bytes ? result.artifact_bytes : log.total_bytes),
         static_cast<double>(budgets.artifact_bytes));
    hold_seconds("training seconds" + whose, result.train_seconds ? result.train_seconds : log.train_seconds,
                 budgets.train_seconds);
    const auto eval = log.scores.empty() ? std::nullopt : log.scores.back().eval_seconds;
    hold_seconds("evaluation seconds" + whose,
                 result.eval_seconds      ? result.eval_seconds
                 : log.total_eval_seconds ? log.total_eval_seconds
                                          : eval,
                 budgets.eval_seconds);
    if (!s.own || !folder.log_of(i)) continue;  // R04 tells that there is none
    if (!log.budgets) {
      check.wrong(fmt::format("the log{} does not say under which budgets it was made", whose));
    } else if (log.budgets->train_seconds != budgets.train_seconds ||
               log.budgets->eval_seconds != budgets.eval_seconds ||
               log.budgets->artifact_bytes != budgets.artifact_bytes) {
      check.wrong(fmt::format("the run{} was made under other budgets than submission.json states", whose));
    }
  }
  // The figure at the top, where it is not one of the results'.
  const auto is_of_result = [&](const SeedResult& result) { return result.artifact_bytes == s.bytes_total; };
  if (!s.own && s.bytes_total && std::ranges::none_of(s.results, is_of_result))
    hold("bytes_total", number(s.bytes_total), static_cast<double>(budgets.artifact_bytes));
  if (s.own && is_record_track(s.track)) {
    const Budgets most;
    if (budgets.train_seconds > most.train_seconds || budgets.eval_seconds > most.eval_seconds ||
        budgets.artifact_bytes > most.artifact_bytes)
      check.wrong(fmt::format("the budgets exceed those of the track {}", s.track));
  }
  return check.finish("", "a result beyond a budget is not a record");
}

Finding statistics_check(const SubmissionFolder& folder) {
  ClaimCheck check("R11", "statistics against the reference", "the same when computed again",
                   folder.submission.own);
  const Submission& s = folder.submission;
  if (!s.comparison) {
    check.unknown("no comparison is stated");
    return check.finish("", "");
  }
  const Comparison& claimed = *s.comparison;
  const Comparison challenge;
  Submission again = s;
  try {
    for (const SeedResult& result : s.results) {
      if (!result.val_bpb || !result.tokens || !result.bytes || *result.tokens == 0)
        throw data_error("{} does not state its score and what was scored", seed_text(result));
    }
    compare(again, claimed);
    const Comparison& found = *again.comparison;
    const auto same = [&](const char* what, double a, double b) {
      check.compare<double>(what, a, b, 1e-9 * std::max(1.0, std::abs(b)), "the computation");
    };
    if (claimed.notes != found.notes) check.wrong("its notes are not those of the computation");
    if (s.own && is_record_track(s.track) &&
        (claimed.margin_nats < challenge.margin_nats || claimed.alpha > challenge.alpha)) {
      check.wrong(fmt::format("it asks for {} nats at p < {}, less than the {} at p < {} of the track {}",
                              claimed.margin_nats, claimed.alpha, challenge.margin_nats, challenge.alpha,
                              s.track));
    }
    same("bytes per token", claimed.bytes_per_token, found.bytes_per_token);
    same("p", claimed.p, found.p);
    same("the difference in nats", claimed.difference_nats, found.difference_nats);
    same("the difference in bits per byte", claimed.difference_bpb, found.difference_bpb);
    if (claimed.accepted != found.accepted || claimed.decision != found.decision)
      check.wrong(fmt::format("the decision is: {}", found.decision));
  } catch (const std::exception& error) {
    check.looked();
    check.wrong(fmt::format("it cannot be computed: {}", error.what()));
  }
  return check.finish("", "state what mulligan stats accept computes");
}

Finding overlap_check(const SubmissionFolder& folder) {
  ClaimCheck check(overlap_id, "training and validation data apart",
                   fmt::format("at most {:g} % of the validation text as it is, {:g} % with changes",
                               100 * TextOverlap::copied_limit, 100 * TextOverlap::similar_limit),
                   folder.submission.own);
  const std::optional<TextOverlap>& overlap = folder.submission.overlap;
  if (!overlap && folder.submission.own) check.wrong("submission.json does not state the overlap");
  if (!overlap) check.unknown("it does not say, and the data do not lie in the folder");
  if (overlap) {
    check.looked();
    if (!overlap->known() || overlap->passages == 0) check.wrong("nothing was compared");
    for (const double share : {overlap->similar, overlap->copied, overlap->pieces, overlap->training}) {
      if (!(share >= 0 && share <= 1)) check.wrong(fmt::format("a share of it is {}", share));
    }
    if (overlap->validation_read > overlap->validation_tokens ||
        overlap->training_read > overlap->training_tokens)
      check.wrong("more tokens were compared than there are");
    if (const std::string excess = overlap->excess(); !excess.empty()) check.wrong(excess);
  }
  return check.finish(overlap ? fmt::format("{:.4g} %, as stated", 100 * overlap->similar) : "",
                      "a score on text that was trained on is not a record");
}

}  // namespace mulligan::record
