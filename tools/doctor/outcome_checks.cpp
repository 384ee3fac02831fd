#include "tools/doctor/outcome_checks.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

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

}  // namespace mulligan::doctor
