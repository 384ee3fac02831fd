#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/report_page/run_sections.h"

namespace mulligan::report {
namespace {

// A chart of training over steps, with what happened to the run as a whole.
LineChart chart_of(const RunRecord& run, const char* id, const char* title, const char* about,
                   const char* y_label, std::vector<Curve> curves = {}) {
  LineChart chart{id, title, about, "step", y_label, false, std::move(curves), {}};
  chart.logarithmic = chart.y_label.ends_with("logarithmic");
  for (const PhaseRecord& phase : run.metrics.phase_starts) {
    if (phase.step > 0) chart.marks.push_back({static_cast<double>(phase.step), "phase " + phase.phase});
  }
  for (const std::int64_t step : run.metrics.resumes)
    chart.marks.push_back({static_cast<double>(step), "resumed from a checkpoint"});
  return chart;
}

// The curve of this name, which begins with its first point.
Curve& named(std::vector<Curve>& curves, const std::string& name, std::size_t colour, Stroke stroke) {
  const auto found = std::ranges::find(curves, name, &Curve::name);
  return found == curves.end() ? curves.emplace_back(Curve{name, {}, colour, stroke}) : *found;
}

// A curve per name in order of first appearance. Every other one is dashed, so two that lie on one another are seen.
std::vector<Curve> curves_by_name(const RunRecord& run,
                                  std::vector<std::pair<std::string, double>> StepRecord::*numbers) {
  std::vector<Curve> curves;
  for (const StepRecord& step : run.metrics.steps) {
    for (const auto& [name, value] : step.*numbers) {
      named(curves, name, curves.size(), curves.size() % 2 == 0 ? Stroke::solid : Stroke::dashed)
          .points.push_back({static_cast<double>(step.step), value});
    }
  }
  return curves;
}

std::vector<Point> scaled(std::vector<Point> points, double factor) {
  for (Point& point : points) point.y *= factor;
  return points;
}

std::vector<Point> validation_curve(const RunRecord& run, double ValidationRecord::*value) {
  std::vector<Point> points;
  for (const ValidationRecord& record : run.metrics.validations)
    points.push_back({static_cast<double>(record.step), record.*value});
  return points;
}

// Whether the training loss is cross entropy in nats: of the project's own losses it is, of others unknown.
bool trains_cross_entropy(const RunRecord& run) {
  const std::string loss = run.setting("loss.plugin");
  return loss.empty() || loss == "cross_entropy" || loss == "softcap_ce";
}

LineChart learning_rate_chart(const RunRecord& run) {
  LineChart chart =
      chart_of(run, "lr-curve", "Learning rate",
               "As the schedule gave it to each optimiser, before the multipliers of [[parameters]].", "",
               curves_by_name(run, &StepRecord::lr));
  for (const RestartRecord& restart : run.metrics.restarts)
    chart.marks.push_back({static_cast<double>(restart.step), "warm restart"});
  return chart;
}

LineChart gradient_norm_chart(const RunRecord& run) {
  LineChart chart = chart_of(run, "gradient-curve", "Gradient norm",
                             "Euclidean, before clipping: of each optimiser's parameters and of all.",
                             "logarithmic", curves_by_name(run, &StepRecord::group_gradient_norm));
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

LineChart ttt_drift_chart(const ResultValue& ttt) {
  LineChart chart{
      "ttt-drift-curve", "Adapters",
      "Size of the adapters after the batch's last update, and their distance from the values they started with.",
      "batch of documents", "Euclidean norm"};
  for (const ResultValue& batch : ttt.list("batches")) {
    const double queue = batch.number("queue", NAN) + 1;
    const auto add = [&](const std::string& name, double norm, Stroke stroke) {
      named(chart.curves, name, chart.curves.size() / 2, stroke).points.push_back({queue, norm});
    };
    for (const auto& [name, norms] : batch.items("adapters")) {
      add(fmt::format("‖{}‖", name), norms.number("norm", NAN), Stroke::solid);
      add(fmt::format("‖{0} − {0}₀‖", name), norms.number("drift", NAN), Stroke::dashed);
    }
  }
  return chart;
}

}  // namespace

std::vector<Point> curve_of(const RunRecord& run, double StepRecord::*value, bool by_seconds) {
  std::vector<Point> points;
  for (const StepRecord& step : run.metrics.steps)
    points.push_back({by_seconds ? step.elapsed_seconds : static_cast<double>(step.step), step.*value});
  return points;
}

std::vector<Point> validation_bpb(const RunRecord& run) {
  return validation_curve(run, &ValidationRecord::val_bpb);
}

std::optional<double> bpb_of_nats(const RunRecord& run) {
  if (!trains_cross_entropy(run) || run.metrics.validations.empty()) return {};
  const ValidationRecord& last = run.metrics.validations.back();
  if (last.bytes == 0) return {};
  return static_cast<double>(last.tokens) / static_cast<double>(last.bytes) / std::numbers::ln2;
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
      "nats per token",
      {{"training, single steps", curve_of(run, &StepRecord::loss_nats), 5, Stroke::faint},
       {"training, window mean", curve_of(run, &StepRecord::window_loss_nats)}});
  if (run.fills_in_masked()) chart.about += " All are of masked tokens, not of the next one.";
  if (!trains_cross_entropy(run)) {
    chart.about += " The training loss is what the plugin '" + run.setting("loss.plugin") +
                   "' computes, the validation loss is cross entropy: the two need not be alike.";
  }
  if (!run.metrics.validations.empty()) {
    chart.curves.push_back(
        {"validation", validation_curve(run, &ValidationRecord::val_loss_nats), 1, Stroke::dots});
  }
  return chart;
}

LineChart bpb_chart(const RunRecord& run) {
  LineChart chart = chart_of(run, "bpb-curve", "Bits per byte", "", "");
  if (const auto factor = bpb_of_nats(run)) {
    chart.about = "The training loss in bits per byte takes the validation text's bytes per token.";
    chart.curves.push_back(
        {"training, window mean", scaled(curve_of(run, &StepRecord::window_loss_nats), *factor)});
  }
  if (!trains_cross_entropy(run)) {
    chart.about = "Of the validation alone: the training loss of '" + run.setting("loss.plugin") +
                  "' may be no cross entropy, so it is not converted.";
  }
  chart.curves.push_back({"validation", validation_bpb(run), 1, Stroke::dots});
  return chart;
}

std::string training_charts(const RunRecord& run) {
  const auto milliseconds = [&](double StepRecord::*value) { return scaled(curve_of(run, value), 1e3); };
  return charts(draw(loss_chart(run)) + draw(bpb_chart(run)) + draw(learning_rate_chart(run)) +
                draw(gradient_norm_chart(run)) +
                draw(chart_of(run, "time-curve", "Step time",
                              "Mean and slowest step since the report before, on the training clock.",
                              "milliseconds, logarithmic",
                              {{"slowest", milliseconds(&StepRecord::slowest_step_seconds), 5, Stroke::faint},
                               {"mean", milliseconds(&StepRecord::step_seconds)}})));
}

std::string ttt_charts(const ResultValue& ttt) {
  if (ttt.list("batches").empty()) return {};
  LineChart score{"ttt-score-curve", "Running score", "Over all documents scored so far.",
                  "batch of documents", score_unit(ttt)};
  if (ttt["without_ttt"].number(scores_bits(ttt) ? "val_bpb" : "val_loss_nats"))
    score.curves.push_back({"without test-time training", running_ttt_score(ttt, false), 1, Stroke::dashed});
  score.curves.push_back({"with test-time training", running_ttt_score(ttt, true)});
  if (const auto batch = ttt.number("collapsed_at_batch"))
    score.marks.push_back({*batch + 1, "collapse seen"});
  const LineChart drift = ttt_drift_chart(ttt);
  return draw(score) + (drift.curves.empty() ? "" : draw(drift));
}

}  // namespace mulligan::report
