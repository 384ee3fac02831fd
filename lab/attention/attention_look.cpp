#include "lab/attention/attention_look.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "framework/core/error.h"
#include "framework/model/parameters.h"
#include "lab/attention/attention_rows.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {
namespace {

// Arguments of the forward kernels, and of the backward kernel after them.
enum Argument : std::size_t { q, k, v, boundaries, o, lse, gradient };

bool is_forward(const Call& call) {
  return call.kernel == "attention_fwd" || call.kernel == "attention_stable_fwd";
}

// The gradient of the result of `forward`; absent where nothing asks for it.
Value gradient_of(const Graph& graph, const Call& forward) {
  for (const Call& call : graph.calls()) {
    if (call.kernel == "attention_bwd" && call.arguments[o].id == forward.arguments[o].id)
      return call.arguments[gradient];
  }
  return {};
}

AttentionCallValues values_of(const PoisonedRun& run, const Call& call) {
  const Graph& graph = run.graph();
  const TensorType &queries = graph.type(call.arguments[q]), &keys = graph.type(call.arguments[k]);
  AttentionCallValues values;
  values.heads = queries.dims[1];
  values.kv_heads = keys.dims[1];
  values.width = queries.dims[2];
  values.softmax_scale = call.attribute("softmax_scale", 1);
  values.q = run.numbers(call.arguments[q]);
  values.k = run.numbers(call.arguments[k]);
  values.v = run.numbers(call.arguments[v]);
  values.o = run.numbers(call.arguments[o]);
  values.boundaries = run.numbers(call.arguments[boundaries]);
  if (const Value of_o = gradient_of(graph, call)) values.gradient = run.numbers(of_o);
  values.dtype = queries.dtype;
  values.tolerance = call.attribute("tolerance", values.tolerance);
  return values;
}

// Of the phase, made ready as the run's own plugins are.
std::int64_t tokens_of(const RunConfig& config) {
  return std::min(AttentionLook::most_tokens, config.train.tokens_per_step / config.train.micro_batches);
}

// Spectral norms of the weights of queries, keys, values and outputs of each layer: "layers.0.q", ...
std::vector<std::pair<std::string, double>> attention_spectral_norms(const ModelConfig& model,
                                                                     const Weights& weights) {
  std::vector<std::pair<std::string, double>> norms;
  const std::int64_t kv_width = model.kv_heads * model.head_width, q_width = model.heads * model.head_width;
  const auto add = [&](std::int64_t layer, const char* role, const std::string& parameter, std::int64_t index,
                       std::int64_t rows, std::int64_t columns) {
    const std::vector<float>& values = weights.at(parameter);
    norms.emplace_back(fmt::format("layers.{}.{}", layer, role),
                       spectral_norm(values.data() + index * rows * columns, rows, columns));
  };
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (model.family == ModelFamily::record) {
      add(layer, "q", "qo_bank", layer, model.width, model.width);
      add(layer, "k", "kv_bank", layer, kv_width, model.width);
      add(layer, "v", "kv_bank", model.layers + layer, kv_width, model.width);
      add(layer, "o", "qo_bank", model.layers + layer, model.width, model.width);
      continue;
    }
    const bool modded = model.family == ModelFamily::modded;
    const auto name = [layer, modded](const std::string& role) {
      if (modded) return fmt::format("blocks.{}.attn.{}.weight", layer, role == "o" ? "proj" : role);
      return fmt::format("model.layers.{}.self_attn.{}_proj.weight", layer, role);
    };
    add(layer, "q", name("q"), 0, q_width, model.width);
    add(layer, "k", name("k"), 0, kv_width, model.width);
    add(layer, "v", name("v"), 0, kv_width, model.width);
    add(layer, "o", name("o"), 0, model.width, q_width);
  }
  return norms;
}

}  // namespace

AttentionLook::AttentionLook(const LoadedConfig& loaded, PluginHost& host, const std::string& section,
                             const Phase& phase)
    : config_(loaded.config),
      plugins_(make_phase_plugins(loaded, host, section)),
      tokens_(tokens_of(config_)),
      probe_(*plugins_.backend, *plugins_.loss, config_, phase.compute_dtype, {},
             drawn_row({tokens_}, config_.model.vocabulary, 1)) {}

AttentionRecord AttentionLook::look(const Weights& weights, const Batch& row, std::int64_t step) {
  probe_.set(weights);
  probe_.set(cut_row(row, tokens_));
  probe_.run();
  AttentionRecord record;
  record.step = step;
  for (const Call& call : probe_.memory().graph().calls()) {
    if (!is_forward(call)) continue;
    AttentionRowsSeen seen = look_at_rows(values_of(probe_.memory(), call), most_rows);
    seen.record.slot = static_cast<std::int64_t>(record.layers.size());
    record.rows = seen.rows;
    record.layers.push_back(std::move(seen.record));
  }
  record.spectral_norms = attention_spectral_norms(config_.model, weights);
  return record;
}

bool AttentionObserver::looks_after(const RunConfig& config, std::int64_t step) const {
  return config.metrics.attention_every > 0 && step % config.metrics.attention_every == 0;
}

// Of the first rank, whose weights are like the others'.
void AttentionObserver::after_step(const ObservedRun& run) {
  if (!run.ranks.first()) return;
  const auto patience = run.ranks.patience();
  const std::string before = run.ledger.enter("doctor");
  if (phase_ != run.phases.index() || !look_) {
    look_.reset();  // its memory first
    look_ = std::make_unique<AttentionLook>(run.loaded, run.host, run.phases.device().section,
                                            run.phases.phase());
    phase_ = run.phases.index();
  }
  const LoaderPosition here = run.rows.position();
  const Batch row = run.rows.next();
  run.rows.restore(here);
  run.metrics->attention(look_->look(weights_of(run.phases.engine().store(), run.parameters), row, run.step));
  run.ledger.enter(before);
}

}  // namespace mulligan::doctor
