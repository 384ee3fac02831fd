#include "launch/commands/run_generate.h"

#include <algorithm>
#include <iterator>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/transformed_encoding.h"
#include "framework/model/elements/masking/config.h"
#include "framework/report/run_log.h"
#include "framework/run/run_plugins.h"
#include "framework/run/weight_origin.h"

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

}  // namespace

GenerateResult run_generate(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                            const WeightLoader& load, const GenerateRunOptions& options) {
  require_next_token(loaded.config.model, "text is generated token by token");
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunConfig& config = loaded.config;
  const Tokenizer tokenizer = require_tokenizer(config);
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  require_computing(backend, "no text can be made");
  RunLog log(options, {});
  DataIdentity now;
  now.tokenizer_sha256 = sha256_hex_of_file(config.data.tokenizer);
  for (const std::string& note : require_tokenizer_of(origin, now, config.data)) log.line(note);
  log.print("text by '{}' on {}", origin.name, backend.info().description);

  LoadedModel model(backend, config, LoadedModel::Masters::scored);
  model.load(load);
  std::vector<int> text = {tokenizer.bos_id()};
  const TextTransform* transform = transform_of(tokenizer);
  std::ranges::copy(tokenizer.encode(transform ? transform->apply(options.prompt) : options.prompt),
                    std::back_inserter(text));

  NextToken predictor(model.store(), config.model, model.layouts(), scored_order(config.model),
                      config.eval.sequence_length);
  SharedArena arena(backend);
  arena.bind(predictor.programs(), model.store());

  GenerateOptions generating = options.generate;
  generating.bos_id = tokenizer.bos_id();
  OriginalTextStream originals(transform);
  const auto tell = [&](const std::string& part) {
    if (options.on_text && !part.empty()) options.on_text(part);
  };
  GenerateResult result = generate(predictor, tokenizer, text, generating,
                                   [&](std::string_view part) { tell(originals.take(part)); });
  tell(originals.finish());
  return result;
}

}  // namespace mulligan
