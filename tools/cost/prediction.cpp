#include "tools/cost/prediction.h"

#include <set>

#include "tools/cost/call_prediction.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {
namespace {

using Kind = StepEvent::Kind;

PredictedPhase predict_phase(StepRehearsal& rehearsal, std::size_t phase, const PredictOptions& options) {
  const RunConfig& config = rehearsal.config();
  const RehearsedStep step = rehearsal.step(phase);
  PredictedPhase predicted;
  predicted.name = config.phases[phase].name;
  predicted.layers = executed_layers(config, config.phases[phase]);

  std::vector<CostRow> rows, categories;
  std::set<std::uint32_t> measurements;
  for (const StepEvent& event : step.events) {
    if (event.kind == Kind::submit || event.kind == Kind::join) continue;
    CostRow one = event_cost(rehearsal, event, rehearsal.segment_tokens(phase), options.card);
    predicted.memsets += event.kind == Kind::zero;
    predicted.copies += event.kind == Kind::copy;
    predicted.uploads += event.kind == Kind::upload;
    if (event.kind == Kind::call) {
      measurements.insert(rehearsal.work(event).measurement);
      ++predicted.calls;
      const Graph& graph = event.program->graph();
      if (options.profile.by_shape) one.shapes = shape_text(graph, graph.calls()[event.call]);
    }
    predicted.total += one;
    CostRow of_category{"", "", "", one.category};
    categories.push_back(of_category += one);
    rows.push_back(std::move(one));
  }
  measurements.erase(0);
  predicted.measurements = static_cast<std::int64_t>(measurements.size());
  predicted.rows = summed(rows);
  predicted.categories = summed(categories);
  return predicted;
}

}  // namespace

std::vector<PredictedPhase> predict_step(LoadedConfig& loaded, PluginHost& host,
                                         const PredictOptions& options) {
  require_divisor(loaded.config, options.ranks);
  StepRehearsal rehearsal(loaded, host, options.ranks, options.document_tokens);
  const RunConfig& config = rehearsal.config();
  std::vector<PredictedPhase> predicted;
  const std::size_t chosen = chosen_phase(config, options.profile.phase);
  for (std::size_t phase = 0; phase < config.phases.size(); ++phase) {
    if (phase != chosen && !options.profile.phase.empty()) continue;
    predicted.push_back(predict_phase(rehearsal, phase, options));
  }
  return predicted;
}

}  // namespace mulligan
