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
  const auto verdict = std::ranges::find(verdict_names, text("verdict"));
  if (verdict == std::end(verdict_names))
    throw data_error("the verdict '{}' of check {} is none of PASS, WARN, FAIL and SKIP.", text("verdict"),
                     text("id"));
  return {text("id"),       text("title"),     static_cast<CheckOutcome>(verdict - verdict_names),
          text("measured"), text("threshold"), text("message"),
          text("hint")};
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
Finding check_optimizer(const MetricsHistory& history, const std::vector<Phase>& phases,
                        const std::string& optimizer) {
  Finding f =
      begin_finding("D29", fmt::format("learning rate that [optimizer.{}] had", optimizer),
                    "fails where it rises by more than 10 % at a resume or a switch of phases, undeclared");
  const auto phase = [&](const std::string& name) { return std::ranges::find(phases, name, &Phase::name); };
  // What a rate is without the factor of its phase.
  const auto plain = [&](double rate, const std::string& name) {
    const auto named = phase(name);
    return named != phases.end() && named->lr_multiplier > 0 ? rate / named->lr_multiplier : rate;
  };
  const auto judge_rise = [&](double before, const std::string& from, double after, const std::string& to,
                              double usual, std::int64_t step, const std::string& where) {
    const double rise = plain(after, to) - plain(before, from);
    if (!std::isnan(rise) && rise <= 0.1 * plain(before, from) + usual) return;
    f.note(
        CheckOutcome::fail,
        fmt::format(
            "the learning rate of [optimizer.{}] jumped from {:.4g} to {:.4g} after step {}, {}: this is a warm "
            "restart",
            optimizer, before, after, step, where),
        "compare the run with another of the same schedule only, or declare it (lr_policy, lr_multiplier)");
  };
  int declared = 0;
  for (const PhaseSwitchRecord& change : history.phase_switches) {
    const auto to = phase(change.to);
    if (to != phases.end() && to->lr_policy != LrPolicy::continued) {
      ++declared;
      continue;
    }
    judge_rise(rate_of(change.lr_before, optimizer), change.from, rate_of(change.lr_after, optimizer),
               change.to, 0, change.step, fmt::format("where phase '{}' begins", change.to));
  }

  const auto& steps = history.steps;
  const auto within = [&](std::int64_t step, std::size_t i) {
    return steps[i - 1].step <= step && step < steps[i].step;
  };
  // Whether a switch or a declared restart lies between line i - 1 and line i.
  const auto explained = [&](std::size_t i) {
    return std::ranges::any_of(history.phase_switches, [&](const auto& e) { return within(e.step, i); }) ||
           std::ranges::any_of(history.restarts, [&](const RestartRecord& r) {
             return r.optimizer == optimizer && within(r.step, i);
           });
  };
  const auto rate = [&](std::size_t i) { return rate_of(steps[i].lr, optimizer); };
  // The rise to line i; 0 where another event explains it.
  const auto rise_to = [&](std::size_t i) {
    if (i == 0 || i >= steps.size() || explained(i)) return 0.0;
    if (std::ranges::any_of(history.resumes, [&](std::int64_t step) { return within(step, i); })) return 0.0;
    return std::max(0.0, plain(rate(i), steps[i].phase) - plain(rate(i - 1), steps[i - 1].phase));
  };
  for (const std::int64_t step : history.resumes) {
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (!within(step, i) || explained(i)) continue;
      judge_rise(rate(i - 1), steps[i - 1].phase, rate(i), steps[i].phase,
                 std::max(rise_to(i - 1), rise_to(i + 1)), step, "where the run was resumed");
    }
  }
  f.measured =
      fmt::format("{} resumes, {} switches of phases, {} declared restarts in {} lines",
                  history.resumes.size(), history.phase_switches.size(), declared, history.steps.size());

  return f;
}

}  // namespace

std::vector<Finding> check_realised_rates(const MetricsHistory& history, const std::vector<Phase>& phases) {
  std::vector<Finding> findings;
  if (history.steps.empty()) return findings;
  for (const auto& [optimizer, rate] : history.steps.front().lr)
    findings.push_back(check_optimizer(history, phases, optimizer));
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
