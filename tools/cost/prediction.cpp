#include "tools/cost/prediction.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "framework/model/layer_order.h"
#include "tools/cost/call_prediction.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/dry_run.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {
namespace {

using Kind = StepEvent::Kind;

void add_to(PredictedRow& sum, const PredictedRow& row) {
  sum.calls += row.calls;
  sum.launches += row.launches;
  sum.flops += row.flops;
  sum.bytes_read += row.bytes_read;
  sum.bytes_written += row.bytes_written;
  sum.seconds += row.seconds;
}

std::vector<PredictedRow> longest_first(auto& by_key) {
  std::vector<PredictedRow> rows;
  for (auto& [key, row] : by_key) rows.push_back(std::move(row));
  std::ranges::stable_sort(rows, std::greater<>(), &PredictedRow::seconds);
  return rows;
}

PredictedPhase predict_phase(StepRehearsal& rehearsal, std::size_t phase, const PredictOptions& options) {
  const RunConfig& config = rehearsal.config();
  const RehearsedStep step = rehearsal.step(phase);
  const LayerOrder order = layer_order(config.model, config.phases[phase].layer_order);
  const EventCost cost(rehearsal, rehearsal.segment_tokens(phase), options.card);
  PredictedPhase predicted;
  predicted.name = config.phases[phase].name;
  predicted.layers = static_cast<std::int64_t>(order.encoder.size() + order.decoder.size());

  std::map<std::tuple<std::string, std::string, std::string, std::string>, PredictedRow> rows;
  std::map<std::string, PredictedRow> categories;
  std::set<std::uint32_t> measurements;
  for (const StepEvent& event : step.events) {
    if (event.kind == Kind::submit || event.kind == Kind::join) continue;
    PredictedRow one = cost.row(event);
    if (options.profile.by_shape && event.kind == Kind::call) {
      one.shapes = shape_text(event.program->graph(), event.program->graph().calls()[event.call]);
    }
    predicted.memsets += event.kind == Kind::zero;
    predicted.copies += event.kind == Kind::copy;
    predicted.uploads += event.kind == Kind::upload;
    if (event.kind == Kind::call) {
      measurements.insert(rehearsal.work(event).measurement);
      ++predicted.calls;
      predicted.launches += one.launches;
    }
    predicted.flops += one.flops;
    predicted.bytes_read += one.bytes_read;
    predicted.bytes_written += one.bytes_written;
    predicted.seconds += one.seconds;
    PredictedRow& row = rows[{one.program, one.kernel, one.shapes, one.category}];
    row.program = one.program;
    row.kernel = one.kernel;
    row.shapes = one.shapes;
    row.category = one.category;
    add_to(row, one);
    categories[one.category].category = one.category;
    add_to(categories[one.category], one);
  }
  measurements.erase(0);
  predicted.measurements = static_cast<std::int64_t>(measurements.size());
  predicted.rows = longest_first(rows);
  predicted.categories = longest_first(categories);
  return predicted;
}

}  // namespace

Prediction predict_step(LoadedConfig& loaded, PluginHost& host, const PredictOptions& options) {
  require_divisor(loaded.config, options.ranks);
  StepRehearsal rehearsal(loaded, host, options.ranks, options.document_tokens);
  const RunConfig& config = rehearsal.config();
  Prediction prediction;
  prediction.card = options.card;
  prediction.ranks = options.ranks;
  prediction.document_tokens = options.document_tokens;
  prediction.tokens_per_step = config.train.tokens_per_step;
  const bool one = options.profile.looped || !options.profile.phase.empty();
  const std::size_t chosen = one ? chosen_phase(config, options.profile) : 0;
  for (std::size_t phase = 0; phase < config.phases.size(); ++phase) {
    if (one && phase != chosen) continue;
    prediction.phases.push_back(predict_phase(rehearsal, phase, options));
  }
  return prediction;
}

}  // namespace mulligan
