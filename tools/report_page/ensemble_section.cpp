// The section of a run's report about an ensemble of its weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/printable.h"
#include "tools/report_page/bar_chart.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {
namespace {

Cell number(const std::optional<double>& value, int digits) {
  return {value ? fixed(*value, digits) : "-", true};
}

std::vector<Cell> row(const std::string& name, const EnsembleResult::Figures& figures, double bytes) {
  return {{name},
          number(figures.loss_nats, 5),
          number(figures.bpb, 5),
          number(figures.accuracy, 4),
          number(figures.ece, 4),
          {bytes > 0 ? bytes_text(bytes) : "-", true}};
}

// What averaging gains, next to the spread of those who are averaged.
std::string chart(const EnsembleResult& result) {
  const auto text = [](double loss) { return fixed(loss, 5) + " nats"; };
  BarChart bars{"ensemble-bars", "Losses of the members", "Nats per token.", {}};
  const auto add = [&](const std::string& name, double loss) {
    bars.bars.push_back({name, loss, text(loss), {}});
  };
  add("the model", result.model.loss_nats);
  add("reference", result.reference.loss_nats);
  constexpr std::size_t shown = 20;
  for (std::size_t k = 0; k < std::min(shown, result.member_loss_nats.size()); ++k)
    add(fmt::format("member {}", k), result.member_loss_nats[k]);
  add("ensemble", result.ensemble.loss_nats);
  return draw(bars);
}

}  // namespace

std::string ensemble_section(const RunRecord& run) {
  if (!run.ensemble) return {};
  const EnsembleResult& result = *run.ensemble;
  double accuracy = 0;
  for (const double share : result.member_accuracy)
    accuracy += share / static_cast<double>(result.member_accuracy.size());
  const double to_bpb = result.model.bpb ? *result.model.bpb / result.model.loss_nats : NAN;
  const EnsembleResult::Figures member{
      result.mean_loss_nats, accuracy,
      result.model.bpb ? std::optional(result.mean_loss_nats * to_bpb) : std::nullopt, std::nullopt};
  const double one = result.kept_bytes + result.member_bytes;
  return section(
      "ensemble", "Ensemble",
      note(fmt::format("{} members of {} by {} ({}), seed {}, over {} tokens. The score is that of several "
                       "models, so it is not a val_bpb of this run.",
                       grouped(std::llround(result.members)), result.weights, result.plugin, result.settings,
                       grouped(std::llround(result.seed)), grouped(std::llround(result.tokens)))) +
          table({"", "nats", "bits per byte", "accuracy", "ECE", "stored"},
                {row("the model", result.model, 0), row("reference", result.reference, one),
                 row("a member, mean", member, one), row("ensemble", result.ensemble, result.all_bytes)}) +
          note(fmt::format("ambiguity {} nats, disagreement {} % of predicted tokens",
                           fixed(result.ambiguity_nats, 6), fixed(100 * result.disagreement, 2))) +
          charts(chart(result)));
}

}  // namespace mulligan::report
