#include "tools/doctor/run_directory_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/json_file.h"
#include "framework/report/run_directory.h"

namespace mulligan::doctor {
namespace {

using Json = nlohmann::ordered_json;
using Rates = std::vector<std::pair<std::string, double>>;

Finding recorded(const Json& json) {
  const auto text = [&](const char* key) { return json.at(key).get<std::string>(); };
  Finding f{text("id"),        text("title"),   CheckOutcome::pass, text("measured"),
            text("threshold"), text("message"), text("hint")};
  for (const CheckOutcome verdict :
       {CheckOutcome::pass, CheckOutcome::warn, CheckOutcome::fail, CheckOutcome::skip}) {
    if (text("verdict") != verdict_name(verdict)) continue;
    f.verdict = verdict;
    return f;
  }
  throw data_error("the verdict '{}' of check {} is none of PASS, WARN, FAIL and SKIP.", text("verdict"),
                   f.id);
}

std::vector<Finding> recorded_findings(const Json& result) {
  std::vector<Finding> findings;
  if (result.contains("doctor")) {
    for (const Json& json : result.at("doctor").at("findings")) findings.push_back(recorded(json));
  }
  if (!findings.empty()) return findings;
  for (const char* id : {"D26", "D27", "D28", "D36", "D38", "D39"}) {
    findings.push_back({id, "what the run found at its end", CheckOutcome::skip, "not recorded", "",
                        "the run made no checks (doctor.level = \"off\")",
                        "train it with doctor.level = \"start\""});
  }
  return findings;
}

double rate_of(const Rates& rates, const std::string& optimizer) {
  const auto found = std::ranges::find(rates, optimizer, &Rates::value_type::first);
  return found == rates.end() ? std::nan("") : found->second;
}

// The rates of one optimiser in the order of training.
class RateHistory {
 public:
  RateHistory(const MetricsHistory& history, const std::vector<Phase>& phases, std::string optimizer)
      : history_(history), phases_(phases), optimizer_(std::move(optimizer)) {}

  Finding check() {
    f_.id = "D29";
    f_.title = fmt::format("learning rate that [optimizer.{}] had", optimizer_);
    f_.threshold = "fails where it rises by more than 10 % at a resume or a switch of phases, undeclared";
    for (const PhaseSwitchRecord& change : history_.phase_switches) look_at(change);
    for (const std::int64_t step : history_.resumes) look_at_resume(step);
    f_.measured = fmt::format("{} resumes, {} switches of phases, {} declared restarts in {} lines",
                              history_.resumes.size(), history_.phase_switches.size(), declared_,
                              history_.steps.size());
    return f_;
  }

 private:
  const Phase* phase(const std::string& name) const {
    const auto found = std::ranges::find(phases_, name, &Phase::name);
    return found == phases_.end() ? nullptr : &*found;
  }
  double factor(const std::string& name) const {
    const Phase* named = phase(name);
    return named && named->lr_multiplier > 0 ? named->lr_multiplier : 1.0;
  }

  void look_at(const PhaseSwitchRecord& change) {
    const Phase* to = phase(change.to);
    if (to && to->lr_policy != LrPolicy::continued) {
      ++declared_;
      return;
    }
    const double before = rate_of(change.lr_before, optimizer_), after = rate_of(change.lr_after, optimizer_);
    judge(before, before / factor(change.from), after, after / factor(change.to), 0, change.step,
          fmt::format("where phase '{}' begins", change.to));
  }

  // The rise of the rate, without the phases' factors, from line i - 1 to line i; 0 where another event
  // explains it.
  double rise_to(std::size_t i) const {
    const auto resumed = [&](std::int64_t step) { return within(step, i); };
    if (i == 0 || i >= history_.steps.size() || seam_between(i)) return 0;
    if (std::ranges::any_of(history_.resumes, resumed)) return 0;
    return std::max(0.0, plain(i) - plain(i - 1));
  }
  double plain(std::size_t i) const {
    return rate_of(history_.steps[i].lr, optimizer_) / factor(history_.steps[i].phase);
  }
  bool within(std::int64_t step, std::size_t i) const {
    return history_.steps[i - 1].step <= step && step < history_.steps[i].step;
  }
  bool seam_between(std::size_t i) const {
    const auto here = [&](const auto& event) { return within(event.step, i); };
    const auto own = [&](const RestartRecord& r) { return r.optimizer == optimizer_ && within(r.step, i); };
    return std::ranges::any_of(history_.phase_switches, here) || std::ranges::any_of(history_.restarts, own);
  }

  void look_at_resume(std::int64_t step) {
    for (std::size_t i = 1; i < history_.steps.size(); ++i) {
      if (!within(step, i)) continue;
      if (seam_between(i)) return;
      const double usual = std::max(rise_to(i - 1), rise_to(i + 1));
      judge(rate_of(history_.steps[i - 1].lr, optimizer_), plain(i - 1),
            rate_of(history_.steps[i].lr, optimizer_), plain(i), usual, step, "where the run was resumed");
    }
  }

  void judge(double before, double plain_before, double after, double plain_after, double usual,
             std::int64_t step, const std::string& where) {
    const double rise = plain_after - plain_before;
    if (!std::isnan(rise) && rise <= 0.1 * plain_before + usual) return;
    if (f_.verdict == CheckOutcome::fail) return;
    f_.verdict = CheckOutcome::fail;
    f_.message = fmt::format(
        "the learning rate of [optimizer.{}] jumped from {:.4g} to {:.4g} after step {}, {}: this is a warm "
        "restart",
        optimizer_, before, after, step, where);
    f_.hint =
        "compare the run with another of the same schedule only, or declare it (lr_policy, lr_multiplier)";
  }

  const MetricsHistory& history_;
  const std::vector<Phase>& phases_;
  std::string optimizer_;
  Finding f_;
  int declared_ = 0;
};

}  // namespace

std::vector<Finding> check_realised_rates(const MetricsHistory& history, const std::vector<Phase>& phases) {
  std::vector<Finding> findings;
  if (history.steps.empty()) return findings;
  for (const auto& [optimizer, rate] : history.steps.front().lr) {
    findings.push_back(RateHistory(history, phases, optimizer).check());
  }
  return findings;
}

std::vector<Finding> examine_run_directory(const std::filesystem::path& directory, const RunConfig& config) {
  const RunFiles files{directory};
  if (!std::filesystem::exists(files.result())) {
    throw config_error("'{}' holds no finished run (no {}); name one, or a configuration.",
                       directory.string(), files.result().filename().string());
  }
  std::vector<Finding> findings = read_json_object<Json>(files.result(), recorded_findings);
  std::ranges::move(check_realised_rates(read_metrics(files.metrics()), config.phases),
                    std::back_inserter(findings));
  return findings;
}

}  // namespace mulligan::doctor
