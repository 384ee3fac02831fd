#include "tools/report_page/run_curves.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numbers>

namespace mulligan::report {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

// Steps where something happened to the run as a whole.
std::vector<Mark> run_marks(const RunRecord& run) {
  std::vector<Mark> marks;
  for (const PhaseRecord& phase : run.metrics.phase_starts) {
    if (phase.step > 0) marks.push_back({static_cast<double>(phase.step), "phase " + phase.phase});
  }
  for (const std::int64_t step : run.metrics.resumes) {
    marks.push_back({static_cast<double>(step), "resumed from a checkpoint"});
  }
  return marks;
}

// A curve per name, every other one dashed, so that two which lie on one another are both seen, of the named
// numbers that `of` picks, in order of first appearance.
std::vector<Curve> curves_by_name(const RunRecord& run,
                                  const std::function<const Numbers&(const StepRecord&)>& of,
                                  std::size_t first_colour) {
  std::vector<Curve> curves;
  std::map<std::string, std::size_t> places;
  for (const StepRecord& step : run.metrics.steps) {
    for (const auto& [name, value] : of(step)) {
      const auto [place, added] = places.emplace(name, curves.size());
      if (added) {
        const Stroke stroke = curves.size() % 2 == 0 ? Stroke::solid : Stroke::dashed;
        curves.push_back({name, {}, first_colour + curves.size(), stroke});
      }
      curves[place->second].points.push_back({static_cast<double>(step.step), value});
    }
  }
  return curves;
}

}  // namespace

std::vector<Point> curve_of(const RunRecord& run, const std::function<double(const StepRecord&)>& value,
                            bool by_seconds) {
  std::vector<Point> points;
  for (const StepRecord& step : run.metrics.steps) {
    points.push_back({by_seconds ? step.elapsed_seconds : static_cast<double>(step.step), value(step)});
  }
  return points;
}

std::vector<Point> validation_bpb(const RunRecord& run) {
  std::vector<Point> points;
  for (const ValidationRecord& record : run.metrics.validations) {
    points.push_back({static_cast<double>(record.step), record.val_bpb});
  }
  return points;
}

bool trains_cross_entropy(const RunRecord& run) {
  const std::string loss = run.setting("loss.plugin");
  return loss.empty() || loss == "cross_entropy" || loss == "softcap_ce";
}

std::optional<double> bpb_of_nats(const RunRecord& run) {
  if (!trains_cross_entropy(run) || run.metrics.validations.empty()) return {};
  const ValidationRecord& last = run.metrics.validations.back();
  if (last.val_bytes == 0) return {};
  return static_cast<double>(last.val_tokens) / static_cast<double>(last.val_bytes) / std::numbers::ln2;
}

std::vector<Point> running_ttt_score(const TttRecord& ttt, bool with) {
  std::vector<Point> points;
  for (const TttRecord::Batch& batch : ttt.batches) {
    const double with_score = std::isnan(batch.running_with) ? batch.running : batch.running_with;
    points.push_back({batch.queue + 1, with ? with_score : batch.running_without});
  }
  return points;
}

const char* score_unit(const TttRecord& ttt) {
  return ttt.bits ? "bits per byte" : "nats per token";
}

LineChart loss_chart(const RunRecord& run) {
  LineChart chart{"loss-curve",
                  "Loss",
                  "Each reported step, the mean over all steps since the report before, and "
                  "the validation loss.",
                  "step",
                  "nats per token",
                  false,
                  {},
                  run_marks(run)};
  if (run.fills_in_masked()) chart.about += " All are of masked tokens, not of the next one.";
  if (!trains_cross_entropy(run)) {
    chart.about += " The training loss is what the plugin '" + run.setting("loss.plugin") +
                   "' computes, the validation loss is cross entropy: the two need not be alike.";
  }
  chart.curves.push_back({"training, single steps",
                          curve_of(run, [](const StepRecord& s) { return s.loss_nats; }), 5, Stroke::faint});
  chart.curves.push_back({"training, window mean",
                          curve_of(run, [](const StepRecord& s) { return s.window_loss_nats; }), 0,
                          Stroke::solid});
  Curve validation{"validation", {}, 1, Stroke::dots};
  for (const ValidationRecord& record : run.metrics.validations) {
    validation.points.push_back({static_cast<double>(record.step), record.val_loss_nats});
  }
  if (!validation.points.empty()) chart.curves.push_back(std::move(validation));
  return chart;
}

LineChart bpb_chart(const RunRecord& run) {
  LineChart chart{"bpb-curve", "Bits per byte", "", "step", "", false, {}, run_marks(run)};
  if (const auto factor = bpb_of_nats(run)) {
    chart.about = "The training loss in bits per byte takes the validation text's bytes per token.";
    chart.curves.push_back({"training, window mean",
                            curve_of(run, [&](const StepRecord& s) { return s.window_loss_nats * *factor; }),
                            0, Stroke::solid});
  }
  if (!trains_cross_entropy(run)) {
    chart.about = "Of the validation alone: the training loss of '" + run.setting("loss.plugin") +
                  "' may be no cross entropy, so it is not converted.";
  }
  chart.curves.push_back({"validation", validation_bpb(run), 1, Stroke::dots});
  return chart;
}

LineChart learning_rate_chart(const RunRecord& run) {
  LineChart chart{"lr-curve",
                  "Learning rate",
                  "As the schedule gave it to each optimiser, before the multipliers of [[parameters]].",
                  "step",
                  "",
                  false,
                  curves_by_name(
                      run, [](const StepRecord& s) -> const Numbers& { return s.lr; }, 0),
                  run_marks(run)};
  for (const RestartRecord& restart : run.metrics.restarts) {
    chart.marks.push_back({static_cast<double>(restart.step), "warm restart"});
  }
  return chart;
}

LineChart gradient_norm_chart(const RunRecord& run) {
  LineChart chart{"gradient-curve",
                  "Gradient norm",
                  "Euclidean, before clipping: of each optimiser's parameters and of all.",
                  "step",
                  "logarithmic",
                  true,
                  {},
                  run_marks(run)};
  chart.curves = curves_by_name(
      run, [](const StepRecord& s) -> const Numbers& { return s.group_gradient_norm; }, 0);
  chart.curves.push_back(
      {"all", curve_of(run, [](const StepRecord& s) { return s.gradient_norm; }), 6, Stroke::dashed});
  const double clip = run.number("train.clip_norm");
  if (clip > 0 && !run.metrics.steps.empty()) {
    const auto first = static_cast<double>(run.metrics.steps.front().step);
    const auto last = static_cast<double>(run.metrics.steps.back().step);
    chart.curves.push_back(
        {fmt::format("train.clip_norm = {}", clip), {{first, clip}, {last, clip}}, 3, Stroke::faint});
  }
  return chart;
}

LineChart step_time_chart(const RunRecord& run) {
  LineChart chart{"time-curve",
                  "Step time",
                  "Mean and slowest step since the report before, on the training clock.",
                  "step",
                  "milliseconds, logarithmic",
                  true,
                  {},
                  run_marks(run)};
  chart.curves.push_back({"slowest",
                          curve_of(run, [](const StepRecord& s) { return 1e3 * s.slowest_step_seconds; }), 5,
                          Stroke::faint});
  chart.curves.push_back(
      {"mean", curve_of(run, [](const StepRecord& s) { return 1e3 * s.step_seconds; }), 0, Stroke::solid});
  return chart;
}

LineChart ttt_score_chart(const TttRecord& ttt) {
  LineChart chart{"ttt-score-curve",
                  "Running score",
                  "Over all documents scored so far.",
                  "batch of documents",
                  score_unit(ttt),
                  false,
                  {},
                  {}};
  if (ttt.without_bpb)
    chart.curves.push_back({"without test-time training", running_ttt_score(ttt, false), 1, Stroke::dashed});
  chart.curves.push_back({"with test-time training", running_ttt_score(ttt, true), 0, Stroke::solid});
  if (ttt.collapsed_at_batch) chart.marks.push_back({*ttt.collapsed_at_batch + 1, "collapse seen"});
  return chart;
}

LineChart ttt_drift_chart(const TttRecord& ttt) {
  LineChart chart{"ttt-drift-curve",
                  "Adapters",
                  "Size of the adapters after the batch's last update, and their "
                  "distance from the values they started with.",
                  "batch of documents",
                  "Euclidean norm",
                  false,
                  {},
                  {}};
  std::map<std::string, std::size_t> places;
  for (const TttRecord::Batch& batch : ttt.batches) {
    for (const auto& [name, norms] : batch.adapters) {
      const auto [place, added] = places.emplace(name, chart.curves.size());
      if (added) {
        const std::size_t colour = places.size() - 1;
        chart.curves.push_back({fmt::format("‖{}‖", name), {}, colour, Stroke::solid});
        chart.curves.push_back({fmt::format("‖{0} − {0}₀‖", name), {}, colour, Stroke::dashed});
      }
      chart.curves[place->second].points.push_back({batch.queue + 1, norms.first});
      chart.curves[place->second + 1].points.push_back({batch.queue + 1, norms.second});
    }
  }
  return chart;
}

}  // namespace mulligan::report
