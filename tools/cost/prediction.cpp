#include "tools/cost/prediction.h"

#include <nlohmann/json.hpp>

#include "framework/core/printable.h"
#include "tools/cost/cost_text.h"

namespace mulligan {
namespace {

using Kind = StepEvent::Kind;

PredictedPhase predict_phase(StepRehearsal& rehearsal, std::size_t phase, const PredictOptions& options) {
  const RunConfig& config = rehearsal.config();
  PredictedPhase predicted;
  predicted.name = config.phases[phase].name;
  predicted.layers = executed_layers(config, config.phases[phase]);

  std::vector<CostRow> rows, categories;
  for (const StepEvent& event : rehearsal.step(phase)) {
    CostRow one = event_cost(rehearsal, event, rehearsal.segment_tokens(phase), options.card);
    predicted.memsets += event.kind == Kind::zero;
    predicted.copies += event.kind == Kind::copy;
    predicted.uploads += event.kind == Kind::upload;
    if (event.kind == Kind::call) {
      ++predicted.calls;
      const Graph& graph = event.program->graph();
      if (options.profile.by_shape) one.shapes = shape_text(graph, graph.calls()[event.call]);
    }
    predicted.total += one;
    CostRow of_category{"", "", "", one.category};
    categories.push_back(of_category += one);
    rows.push_back(std::move(one));
  }
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

namespace {

using Json = nlohmann::ordered_json;

void add_phase(TextLines& text, const PredictedPhase& phase, int ranks, std::int64_t tokens) {
  const CostRow& total = phase.total;
  text.line("");
  text.line("phase {} ({} layers)", phase.name, phase.layers);
  add_cost_table(text, "category", phase.categories, total.seconds, true);
  text.line("");
  add_cost_table(text, "program: kernel", phase.rows, total.seconds, true);
  text.line("");
  text.line("predicted step  {:>9.2f} ms, {} tokens/s of {} rank{}, communication left out",
            1e3 * total.seconds, token_rate(tokens, total.seconds), ranks, ranks == 1 ? "" : "s");
  text.line(
      "{} calls, {} launches, {} memsets, {} copies, {} uploads; {:.2f} TFLOP, {:.1f} GB read, {:.1f} GB "
      "written",
      grouped(phase.calls), grouped(total.launches), phase.memsets, phase.copies, phase.uploads,
      total.flops / 1e12, total.bytes_read / 1e9, total.bytes_written / 1e9);
}

Json figures(const CostRow& row) {
  return {{"calls", row.calls}, {"launches", row.launches},     {"seconds", row.seconds},
          {"flops", row.flops}, {"bytes_read", row.bytes_read}, {"bytes_written", row.bytes_written}};
}

Json phase_json(const PredictedPhase& phase) {
  Json rows = Json::array(), categories = Json::array();
  for (const CostRow& row : phase.categories) {
    Json json{{"category", row.category}};
    json.update(figures(row));
    categories.push_back(std::move(json));
  }
  for (const CostRow& row : phase.rows) {
    Json json{{"program", row.program}, {"kernel", row.kernel}, {"category", row.category}};
    json.update(figures(row));
    if (!row.shapes.empty()) json["shapes"] = row.shapes;
    rows.push_back(std::move(json));
  }
  return {{"phase", phase.name},
          {"layers", phase.layers},
          {"predicted_step_seconds", phase.total.seconds},
          {"calls", phase.calls},
          {"launches", phase.total.launches},
          {"memsets", phase.memsets},
          {"copies", phase.copies},
          {"uploads", phase.uploads},
          {"flops", phase.total.flops},
          {"bytes_read", phase.total.bytes_read},
          {"bytes_written", phase.total.bytes_written},
          {"categories", std::move(categories)},
          {"rows", std::move(rows)}};
}

}  // namespace

std::string format_prediction(const std::vector<PredictedPhase>& phases, const PredictOptions& options,
                              std::int64_t tokens) {
  const Card& card = options.card;
  TextLines text;
  text.line("predicted, not measured: one step of {} tokens on {} x {}, work of one rank", grouped(tokens),
            options.ranks, card.description);
  text.line(
      "taken for granted: {:.2f} TB/s; bf16 matmuls {:.0f} TFLOP/s (layers) and "
      "{:.0f} (head), attention {:.0f} forward and {:.0f} backward; {:.1f} us a launch",
      card.sustained_bytes_per_second / 1e12, card.layer_product_flops_per_second / 1e12,
      card.wide_product_flops_per_second / 1e12, card.attention_forward_flops_per_second / 1e12,
      card.attention_backward_flops_per_second / 1e12, card.launch_seconds * 1e6);
  if (options.document_tokens == 0) {
    text.line("rows of whole segments");
  } else {
    text.line("rows of documents, {} tokens long (mean over tokens)", grouped(options.document_tokens));
  }
  for (const PredictedPhase& phase : phases) add_phase(text, phase, options.ranks, tokens);
  return text.take();
}

std::string prediction_json(const std::vector<PredictedPhase>& phases, const PredictOptions& options,
                            std::int64_t tokens) {
  Json list = Json::array();
  for (const PredictedPhase& phase : phases) list.push_back(phase_json(phase));
  const Json json{{"predicted", true},         {"card", options.card.name},
                  {"ranks", options.ranks},    {"document_tokens", options.document_tokens},
                  {"tokens_per_step", tokens}, {"phases", std::move(list)}};
  return json.dump(2) + "\n";
}

}  // namespace mulligan
