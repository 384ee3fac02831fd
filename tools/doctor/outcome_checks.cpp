#include "tools/doctor/outcome_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/json_file.h"
#include "framework/report/run_directory.h"

namespace mulligan::doctor {

Finding judge_learning(const Outcome& o) {
  constexpr double not_learned = 0.98, guessing = 1.02;
  constexpr std::int64_t early = 40, late = 100;
  const double nats = std::log(static_cast<double>(o.vocabulary));
  const char* what = o.of_training ? "training loss" : "validation loss";
  Finding f = begin_finding(
      "D26", "what the run has learned",
      fmt::format("after {} steps fails above {} ln V = {:.4f}, after {} steps warns; not finite fails", late,
                  not_learned, not_learned * nats, early));
  f.measured = fmt::format("{} {:.4f} nats after {} steps; ln V = {:.4f}", what, o.val_nats, o.steps, nats);
  if (o.steps <= early && !std::isnan(o.val_nats)) return f;
  const bool soon = o.steps <= late && !std::isnan(o.val_nats);
  if (judge(o.val_nats, {-no_limit, not_learned * nats}) == CheckOutcome::pass) return f;
  const double of_data = o.unigram_nats / nats;
  const std::string message = fmt::format(
      "the run failed to learn: after {} steps its {} of {:.4f} nats is {:.3f} of ln V = {:.4f}, {}", o.steps,
      what, o.val_nats, o.val_nats / nats, nats,
      o.val_nats > guessing * nats ? "worse than guessing" : "that of guessing");
  return judged(
      f, soon ? CheckOutcome::warn : CheckOutcome::fail, message,
      of_data > not_learned
          ? fmt::format("the data leave nothing to learn from single tokens (their entropy is {:.3f} "
                        "of ln V): look whether the ids are random (D37)",
                        of_data)
          : "look at the learning rates, at what did not move (D38, D39), at the gradients (doctor "
            "--stage train), and at evaluation against training (D16, D17)");
}

Finding judge_validation_floor(const Outcome& o) {
  Finding f = begin_finding(
      "D27", "validation loss against the data's floor and the training loss",
      fmt::format("fails below {:.4f} nats, and below 0.5 or above 3 of the last steps' training loss",
                  o.floor_nats));
  const bool trained = o.last_steps && o.steps > 0 && o.last_steps->mean_nats > 0;
  const double ratio = trained ? o.val_nats / o.last_steps->mean_nats : 1;
  f.measured = trained ? fmt::format("{:.4f} nats, {:.3f} of the training loss of steps [{}, {})", o.val_nats,
                                     ratio, o.last_steps->first, o.last_steps->last)
                       : fmt::format("{:.4f} nats", o.val_nats);
  return judged(
      std::move(f), std::max(judge(o.val_nats, {o.floor_nats}), judge(ratio, {0.5, 3})),
      o.val_nats < o.floor_nats
          ? fmt::format("the validation loss of {:.4f} nats is below the data's floor of {:.4f}", o.val_nats,
                        o.floor_nats)
          : fmt::format(
                "the validation loss of {:.4f} nats is {:.2f} times that of training at the same steps",
                o.val_nats, ratio),
      "look at the corpus (D21 to D23, D25), the targets (D19) and at what the two losses are means of");
}

Finding judge_account(const LossAccount& account, std::int64_t steps) {
  Finding f =
      begin_finding("D28", "steps that the mean losses are of", "any other number than the steps made fails");
  const LossAccount::State& state = account.state();
  const auto counted = static_cast<std::int64_t>(state.run.steps_counted) + state.steps_skipped;
  f.measured = fmt::format("{} counted{} of {} made, window [{}, {})", state.run.steps_counted,
                           state.steps_skipped > 0 ? fmt::format(" and {} skipped", state.steps_skipped) : "",
                           steps, state.step_first, state.step_last);
  if (counted == steps && state.step_last - state.step_first == steps && state.step_first == 0) return f;
  return failed(
      std::move(f),
      fmt::format(
          "the mean training loss covers steps [{}, {}), {} of {}; do not compare it with one over [0, {})",
          state.step_first, state.step_last, counted, steps, steps),
      "compare means over the same steps alone (train_loss_last_k, mulligan report RUN RUN)");
}

double cpu_peak(int threads, bool bf16) {
  constexpr double cycles_per_second = 6e9;
  return threads * cycles_per_second * (bf16 ? 1024 : 64);
}

Finding judge_throughput(const Throughput& seen) {
  Finding f = begin_finding("D36", "tokens, seconds and operations",
                            "fails where they contradict each other or the machine's peak");
  const double rate = seen.train_seconds > 0 ? static_cast<double>(seen.tokens) / seen.train_seconds : 0;
  const double operations = 6 * seen.matrix_parameters * seen.tokens_per_second;
  const double share = seen.peak_operations_per_second > 0 ? operations / seen.peak_operations_per_second : 0;
  f.measured = fmt::format("{} tokens in {:.3f} s: {:.0f} tokens/s, {:.3g} operations/s{}", seen.tokens,
                           seen.train_seconds, seen.tokens_per_second, operations,
                           share > 0 ? fmt::format(", {:.2g} % of a bound of the machine", 100 * share) : "");
  if (seen.steps == 0) return f;
  std::string why;
  if (!(std::abs(rate - seen.tokens_per_second) <= 0.01 * rate)) {
    why = fmt::format("{} tokens in {:.3f} s are {:.0f} per second, but {:.0f} are reported", seen.tokens,
                      seen.train_seconds, rate, seen.tokens_per_second);
  } else if (!(seen.train_seconds <= seen.run_seconds * 1.01 + 0.01)) {
    why = fmt::format("{:.3f} s of training lie in a run of {:.3f} s", seen.train_seconds, seen.run_seconds);
  } else if (share > 1) {
    why = fmt::format("{:.3g} operations per second are more than the machine can do", operations);
  }
  if (why.empty()) return f;
  return failed(f, why,
                "a number has another unit than its name says, or work was not done: do not report it");
}

Finding check_rates(const std::string& optimizer, const std::vector<RatePoint>& points) {
  Finding f =
      begin_finding("D29", fmt::format("learning rate of [optimizer.{}]", optimizer),
                    "fails where it rises by more than 10 % at once, without a declared restart or factor");
  double highest = 0, lowest = 0;
  std::size_t restarts = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const RatePoint& now = points[i];
    highest = i == 0 ? now.lr : std::max(highest, now.lr);
    lowest = i == 0 ? now.lr : std::min(lowest, now.lr);
    if (i == 0) continue;
    const RatePoint& before = points[i - 1];
    if (now.cycle != before.cycle || (now.phase != before.phase && now.restarts)) {
      ++restarts;
      continue;
    }
    constexpr double warm_up = 0.05;
    if (before.progress < warm_up || before.declared <= 0 || now.declared <= 0) continue;
    // What the phases' factors explain is not a jump.
    const double from = before.lr / before.declared, to = now.lr / now.declared;
    const double rise = to - from;
    if (rise <= 0.1 * from || rise <= 0.01 * highest / now.declared) continue;
    f.note(
        CheckOutcome::fail,
        fmt::format(
            "the learning rate of [optimizer.{}] jumps from {:.4g} to {:.4g} at {:.1f} % of the run: this is a "
            "warm restart",
            optimizer, before.lr, now.lr, 100 * now.progress),
        "declare it (a schedule with cycles, a phase's lr_multiplier), or its effect is taken for something "
        "else's");
  }
  f.measured = fmt::format("{:.4g} to {:.4g}, {} declared restarts", lowest, highest, restarts);
  return f;
}

namespace {

using Json = nlohmann::ordered_json;
using Rates = std::vector<std::pair<std::string, double>>;

std::vector<Finding> recorded_findings(const Json& result) {
  std::vector<Finding> findings;
  if (result.contains("doctor")) {
    for (const Json& json : result.at("doctor").at("findings")) findings.push_back(finding_from_json(json));
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
