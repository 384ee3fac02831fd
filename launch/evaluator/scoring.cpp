#include "launch/evaluator/scoring.h"

#include <algorithm>

#include "framework/artifact/artifact_model.h"
#include "framework/core/error.h"
#include "framework/data/documents.h"
#include "framework/data/shard.h"
#include "framework/data/side_bytes.h"
#include "framework/data/tokenizer.h"
#include "framework/eval/evaluator.h"
#include "framework/graph/program.h"
#include "framework/plugin/optimizer.h"
#include "framework/plugin/transform.h"
#include "framework/plugin/ttt.h"
#include "framework/run/parameter_store.h"
#include "framework/ttt/ttt_scorer.h"
#include "launch/evaluator/plugins.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The artifact's weights on a backend.
struct Model {
  Model(const Artifact& artifact, const EvaluationSettings& settings,
        const std::vector<EvaluationSettings::Master>* masters)
      : backend(linked_plugin(MLG_BACKEND, settings.backend), plugin_config(settings.backend)),
        store(backend) {
    backend.set_fused_kernels(settings.fused_kernels);
    const ComputeTypes types(static_cast<DType>(settings.activations),
                             static_cast<DType>(settings.projections));
    layouts = parameter_layouts(settings.model, types);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      ParameterLayout& layout = layouts[i];
      if (masters && i < masters->size()) {
        layout.master = static_cast<DType>((*masters)[i].dtype);
        layout.trained = (*masters)[i].trained;
      } else if (!masters && types.projections != types.activations && layout.spec.projection) {
        layout.master = layout.compute;
      }
      store.create(master_name(layout.spec.name), layout.spec.type.as(layout.master));
    }
    load_artifact(artifact, settings.model, store, layouts);
    refresh_copies(store, layouts);
  }

  Backend backend;
  TensorStore store;
  std::vector<ParameterLayout> layouts;
};

}  // namespace

std::unique_ptr<Transform> score_transform(const EvaluationSettings& settings) {
  if (settings.transform.name.empty()) return {};
  return std::make_unique<Transform>(linked_plugin(MLG_TRANSFORM, settings.transform),
                                     plugin_config(settings.transform));
}

ScoredText::ScoredText(const Artifact& artifact, const EvaluationSettings& settings,
                       const fs::path& tokenizer, const std::vector<fs::path>& shards) {
  const Tokenizer pieces = Tokenizer::load(tokenizer);
  data_error_if(pieces.sha256() != artifact.data.tokenizer_sha256,
                "'{}' is not the tokenizer of the artifact; name that one.", tokenizer.string());
  bos_id = pieces.bos_id();
  tokens = read_tokens(shards);
  std::vector<fs::path> tables;
  for (const fs::path& shard : shards) {
    if (const fs::path table = side_table_next_to(shard); !table.empty()) tables.push_back(table);
  }
  bytes = std::make_unique<ByteTable>(
      ByteTable::from_tokenizer(pieces, static_cast<int>(settings.model.vocabulary)));
  if (!tables.empty() && bytes->sha256() != artifact.data.byte_table_sha256)
    bytes = std::make_unique<SideTable>(SideTable::load(tables, shards));
  if (settings.eval.tokens > 0 && tokens.size() > static_cast<std::size_t>(settings.eval.tokens) + 1)
    tokens.resize(static_cast<std::size_t>(settings.eval.tokens) + 1);
  if (bytes->count(tokens) == 0)  // also throws for a token beyond the vocabulary
    throw data_error("the shards hold no text");
}

ScoreSums score_plain(const Artifact& artifact, const EvaluationSettings& settings, const ScoredText& text) {
  Model model(artifact, settings, nullptr);
  EvaluatorOptions options;
  options.eval = settings.eval;
  options.layer_order = scored_order(settings.model);
  options.bos_id = settings.joined ? kNoDocuments : text.bos_id;
  BoundEvaluator scoring(model.store, settings.model, model.layouts, options);
  return scoring.evaluator.score(text.tokens, text.bytes.get());
}

ScoreSums score_adapting(const Artifact& artifact, const EvaluationSettings& settings, ScoredText& text,
                         std::int64_t ranks) {
  const bool first = become_ranks(ranks);
  const bool trains_base = !settings.base.name.empty();
  Model model(artifact, settings, trains_base || !settings.masters.empty() ? &settings.masters : nullptr);
  if (settings.eval.drop_remainder)
    text.tokens.resize(static_cast<std::size_t>(
        whole_rows_length(static_cast<std::int64_t>(text.tokens.size()), settings.eval.sequence_length)));
  const auto add_kernels = [&](const PluginHandle& plugin) { model.backend.add_kernels(*plugin); };

  const PluginHandle rule = linked_plugin(MLG_TTT, settings.adapters),
                     optimizer_plugin = linked_plugin(MLG_OPTIMIZER, settings.optimizer);
  const TttPlugin adapters(rule, plugin_config(settings.adapters));
  const Optimizer optimizer(optimizer_plugin, plugin_config(settings.optimizer));
  add_kernels(rule);
  add_kernels(optimizer_plugin);
  std::optional<TttPlugin> base;
  std::optional<Optimizer> base_optimizer;
  if (trains_base) {
    base.emplace(linked_plugin(MLG_TTT, settings.base), plugin_config(settings.base));
    const PluginHandle plugin = linked_plugin(MLG_OPTIMIZER, settings.base_optimizer);
    base_optimizer.emplace(plugin, plugin_config(settings.base_optimizer));
    add_kernels(plugin);
  }
  const std::unique_ptr<Transform> transform = score_transform(settings);

  const BaseModel view{model.store, settings.model, model.layouts, static_cast<DType>(settings.activations),
                       scored_order(settings.model)};
  const PhiloxDraws draws(static_cast<std::uint64_t>(settings.seed));
  const TttSetup setup{.config = settings.ttt,
                       .adapters = adapters,
                       .optimizer = optimizer,
                       .lr = settings.lr,
                       .base = base ? &*base : nullptr,
                       .base_optimizer = base_optimizer ? &*base_optimizer : nullptr,
                       .row_tokens = settings.eval.sequence_length,
                       .draws = draws,
                       .transform = transform.get(),
                       .transform_order = settings.transform_order,
                       .lanes = std::max(ranks, settings.ttt.lanes)};
  TttScorer scorer(view, setup, {text.tokens, text.bos_id, text.bytes.get(), {}});
  scorer.run();
  if (!first) std::_Exit(0);
  return scorer.book().sums();
}

}  // namespace mulligan
