// Continues a text with a model, as a configuration describes it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "framework/config/run_config.h"
#include "framework/eval/generate.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/loaded_model.h"
#include "framework/run/weight_origin.h"

namespace mulligan {

struct GenerateRunOptions : ConsoleOptions {  // for notes: the text goes to on_text
  std::string prompt;
  GenerateOptions generate;                       // bos_id is set from the tokenizer
  std::function<void(std::string_view)> on_text;  // whole UTF-8 characters, as they come
};

// `load` fills the masters of the weights, `origin` says where they come from. The context is a document of
// its own. The model sees its last eval.sequence_length tokens. The same weights, prompt, seed and backend give
// the same text. Throws Error; data_error when the weights belong to another tokenizer
// (require_tokenizer_of).
GenerateResult run_generate(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                            const WeightLoader& load, const GenerateRunOptions& options);

}  // namespace mulligan
