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

// A curve per name in order of first appearance. Every other one is dashed, so two that lie on one another are seen.
std::vector<Curve> curves_by_name(const RunRecord& run, Numbers StepRecord::*numbers) {
  std::vector<Curve> curves;
  std::map<std::string, std::size_t> places;
  for (const StepRecord& step : run.metrics.steps) {
    for (const auto& [name, value] : step.*numbers) {
      const auto [place, added] = places.emplace(name, curves.size());
      if (added)
        curves.push_back({name, {}, curves.size(), curves.size() % 2 == 0 ? Stroke::solid : Stroke::dashed});
      curves[place->second].points.push_back({static_cast<double>(step.step), value});
    }
  }
  return curves;
}

// A chart of training, over steps.
LineChart chart_of(const RunRecord& run, const char* id, const char* title, const char* about,
                   const char* y_label, bool logarithmic = false) {
  return {id, title, about, "step", y_label, logarithmic, {}, run_marks(run)};
}

}  // namespace

std::vector<Point> curve_of(const RunRecord& run, double StepRecord::*value, bool by_seconds) {
  std::vector<Point> points;
  for (const StepRecord& step : run.metrics.steps)
    points.push_back({by_seconds ? step.elapsed_seconds : static_cast<double>(step.step), step.*value});
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

std::vector<Point> running_ttt_score(const ResultValue& ttt, bool with) {
  const char* sum = scores_bits(ttt) ? "bpb" : "loss_nats";
  std::vector<Point> points;
  for (const ResultValue& batch : ttt.list("batches")) {
    // Of the windows that were also scored without adaptation, where there are any.
    const double plain = batch["compared/without"].number(sum, NAN);
    const double adapted = batch["compared/with"].number(sum, batch["running"].number(sum, NAN));
    points.push_back({batch.number("queue", NAN) + 1, with ? adapted : plain});
  }
  return points;
}

const char* score_unit(const ResultValue& ttt) {
  return scores_bits(ttt) ? "bits per byte" : "nats per token";
}

LineChart loss_chart(const RunRecord& run) {
  LineChart chart = chart_of(
      run, "loss-curve", "Loss",
      "Each reported step, the mean over all steps since the report before, and the validation loss.",
      "nats per token");
  if (run.fills_in_masked()) chart.about += " All are of masked tokens, not of the next one.";
  if (!trains_cross_entropy(run)) {
    chart.about += " The training loss is what the plugin '" + run.setting("loss.plugin") +
                   "' computes, the validation loss is cross entropy: the two need not be alike.";
  }
  Curve validation{"validation", {}, 1, Stroke::dots};
  for (const ValidationRecord& record : run.metrics.validations)
    validation.points.push_back({static_cast<double>(record.step), record.val_loss_nats});
  chart.curves = {{"training, single steps", curve_of(run, &StepRecord::loss_nats), 5, Stroke::faint},
                  {"training, window mean", curve_of(run, &StepRecord::window_loss_nats)}};
  if (!validation.points.empty()) chart.curves.push_back(std::move(validation));
  return chart;
}

LineChart bpb_chart(const RunRecord& run) {
  LineChart chart = chart_of(run, "bpb-curve", "Bits per byte", "", "");
  if (const auto factor = bpb_of_nats(run)) {
    chart.about = "The training loss in bits per byte takes the validation text's bytes per token.";
    Curve training{"training, window mean", curve_of(run, &StepRecord::window_loss_nats)};
    for (Point& point : training.points) point.y *= *factor;
    chart.curves.push_back(std::move(training));
  }
  if (!trains_cross_entropy(run)) {
    chart.about = "Of the validation alone: the training loss of '" + run.setting("loss.plugin") +
                  "' may be no cross entropy, so it is not converted.";
  }
  chart.curves.push_back({"validation", validation_bpb(run), 1, Stroke::dots});
  return chart;
}

LineChart learning_rate_chart(const RunRecord& run) {
  LineChart chart =
      chart_of(run, "lr-curve", "Learning rate",
               "As the schedule gave it to each optimiser, before the multipliers of [[parameters]].", "");
  chart.curves = curves_by_name(run, &StepRecord::lr);
  for (const RestartRecord& restart : run.metrics.restarts)
    chart.marks.push_back({static_cast<double>(restart.step), "warm restart"});
  return chart;
}

LineChart gradient_norm_chart(const RunRecord& run) {
  LineChart chart =
      chart_of(run, "gradient-curve", "Gradient norm",
               "Euclidean, before clipping: of each optimiser's parameters and of all.", "logarithmic", true);
  chart.curves = curves_by_name(run, &StepRecord::group_gradient_norm);
  chart.curves.push_back({"all", curve_of(run, &StepRecord::gradient_norm), 6, Stroke::dashed});
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
  LineChart chart = chart_of(run, "time-curve", "Step time",
                             "Mean and slowest step since the report before, on the training clock.",
                             "milliseconds, logarithmic", true);
  chart.curves = {{"slowest", curve_of(run, &StepRecord::slowest_step_seconds), 5, Stroke::faint},
                  {"mean", curve_of(run, &StepRecord::step_seconds)}};
  for (Curve& curve : chart.curves) {
    for (Point& point : curve.points) point.y *= 1e3;
  }
  return chart;
}

LineChart ttt_score_chart(const ResultValue& ttt) {
  LineChart chart{"ttt-score-curve", "Running score", "Over all documents scored so far.",
                  "batch of documents", score_unit(ttt)};
  if (ttt["without_ttt"].number(scores_bits(ttt) ? "val_bpb" : "val_loss_nats"))
    chart.curves.push_back({"without test-time training", running_ttt_score(ttt, false), 1, Stroke::dashed});
  chart.curves.push_back({"with test-time training", running_ttt_score(ttt, true)});
  if (const auto batch = ttt.number("collapsed_at_batch"))
    chart.marks.push_back({*batch + 1, "collapse seen"});
  return chart;
}

LineChart ttt_drift_chart(const ResultValue& ttt) {
  LineChart chart{
      "ttt-drift-curve", "Adapters",
      "Size of the adapters after the batch's last update, and their distance from the values they "
      "started with.",
      "batch of documents", "Euclidean norm"};
  std::map<std::string, std::size_t> places;
  for (const ResultValue& batch : ttt.list("batches")) {
    const double queue = batch.number("queue", NAN) + 1;
    for (const auto& [name, norms] : batch.items("adapters")) {
      const auto [place, added] = places.emplace(name, chart.curves.size());
      if (added) {
        const std::size_t colour = places.size() - 1;
        chart.curves.push_back({fmt::format("‖{}‖", name), {}, colour});
        chart.curves.push_back({fmt::format("‖{0} − {0}₀‖", name), {}, colour, Stroke::dashed});
      }
      chart.curves[place->second].points.push_back({queue, norms.number("norm", NAN)});
      chart.curves[place->second + 1].points.push_back({queue, norms.number("drift", NAN)});
    }
  }
  return chart;
}

}  // namespace mulligan::report
