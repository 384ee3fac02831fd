#include "launch/commands/run_generate.h"

#include <memory>
#include <optional>

#include "framework/adapters/adapter_taps.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/steady_time.h"
#include "framework/data/transformed_encoding.h"
#include "framework/model/elements/masking/config.h"
#include "framework/report/run_log.h"
#include "framework/run/run_plugins.h"
#include "framework/run/weight_origin.h"
#include "framework/ttt/ttt_inputs.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {
namespace {

Tokenizer require_tokenizer(const RunConfig& config) {
  if (config.data.tokenizer.empty()) {
    throw config_error(
        "data.tokenizer is not set, but text is made of its pieces; name the tokenizer with --set "
        "data.tokenizer=FILE.");
  }
  Tokenizer tokenizer = Tokenizer::load(config.data.tokenizer);
  if (tokenizer.vocab_size() > config.model.vocabulary) {
    throw config_error(
        "the tokenizer '{}' has {} pieces, but model.vocabulary is {}, so it is not the one that the model "
        "was trained with.",
        config.data.tokenizer, tokenizer.vocab_size(), config.model.vocabulary);
  }
  return tokenizer;
}

// Adapters trained on one document, for as long as the object lives.
class DocumentAdapters {
 public:
  DocumentAdapters(const BaseModel& model, const TttPlugins& rule, const RunConfig& config,
                   std::span<const int> document, int bos_id, RunLog& log)
      : config_(config.ttt->config),
        setup_(of_one_document(rule.setup(config))),
        tokens_(document.begin(), document.end()),
        compute_(model.compute),
        run_(model, setup_, {tokens_, bos_id, nullptr, {}}) {
    const ScoreSums sums = run_.run().sums;
    log.print("adapters trained on a document of {} tokens, {:.4f} nats per token on the way", tokens_.size(),
              sums.mean_loss_nats());
  }

  // The adapters in one more forward pass.
  std::unique_ptr<Taps> taps() const {
    return std::make_unique<AdapterTaps>(setup_.adapters, "ttt/batch1", 1, 1, compute_,
                                         [](Graph&, std::span<const AdapterTaps::Gradient>) {});
  }

 private:
  TttSetup of_one_document(const TttSetup& of_run) {
    config_.batch_documents = 1;
    config_.document_fraction = 1.0;
    config_.prefix_documents = 0;
    config_.on_collapse = OnCollapse::off;
    return {config_, of_run.adapters, of_run.optimizer,  of_run.lr,
            nullptr, nullptr,         of_run.row_tokens, of_run.draws};
  }

  TttConfig config_;
  TttSetup setup_;
  std::vector<std::uint16_t> tokens_;
  DType compute_;
  TttScorer run_;
};

}  // namespace

GenerateRunResult run_generate(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                               const WeightLoader& load, const GenerateRunOptions& options) {
  const bool adapted = !options.document.empty();
  if (adapted && !loaded.config.ttt) {
    throw config_error("{}: there is no [ttt] section, which says how adapters are trained; add one.",
                       loaded.file);
  }
  require_next_token(loaded.config.model, "text is generated token by token");
  resolve_run_plugins(loaded, host, adapted ? PluginUse::adapt : PluginUse::score);
  const RunConfig& config = loaded.config;
  const Tokenizer tokenizer = require_tokenizer(config);
  RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  require_computing(backend, "no text can be made");
  std::optional<TttPlugins> rule;
  if (adapted) rule.emplace(loaded, host, plugins);
  RunLog log(options, {});
  DataIdentity now;
  now.tokenizer_sha256 = sha256_hex_of_file(config.data.tokenizer);
  for (const std::string& note : require_tokenizer_of(origin, now, config.data)) log.line(note);
  log.print("text by '{}' on {}", origin.name, backend.info().description);

  LoadedModel model(backend, config, LoadedModel::Masters::scored);
  model.load(load);
  const BaseModel base = base_model(model, config);
  std::vector<int> text = {tokenizer.bos_id()};
  const TextTransform* transform = transform_of(tokenizer);
  const auto append = [&](const std::string& part) {
    const std::vector<int> ids = tokenizer.encode(transform ? transform->apply(part) : part);
    text.insert(text.end(), ids.begin(), ids.end());
  };
  std::unique_ptr<DocumentAdapters> adapters;
  if (adapted) {
    append(options.document);
    adapters = std::make_unique<DocumentAdapters>(base, *rule, config, text, tokenizer.bos_id(), log);
  }
  append(options.prompt);

  NextTokenOptions next;
  next.layer_order = base.layer_order;
  next.window = adapted ? config.ttt->config.context_tokens : config.eval.sequence_length;
  if (adapted) next.adapters = [&] { return adapters->taps(); };
  NextToken predictor(model.store(), config.model, model.layouts(), next);
  SharedArena arena(backend);
  arena.bind(predictor.programs(), model.store());

  GenerateOptions generating = options.generate;
  generating.bos_id = tokenizer.bos_id();
  const auto start = std::chrono::steady_clock::now();
  GenerateRunResult result;
  OriginalTextStream originals(transform);
  const auto tell = [&](const std::string& part) {
    if (options.on_text && !part.empty()) options.on_text(part);
  };
  result.generated = generate(predictor, tokenizer, text, generating,
                              [&](std::string_view part) { tell(originals.take(part)); });
  tell(originals.finish());
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace mulligan
