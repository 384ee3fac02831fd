// mulligan export RUN --to hf|gguf OUT: what is scored, in the form of other programs; and as a weights file of ours.
#include <fmt/format.h>

#include "framework/checkpoint/hugging_face.h"
#include "framework/checkpoint/weight_exchange.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/data/transformed_encoding.h"
#include "framework/run/run_files.h"
#include "framework/run/run_plugins.h"
#include "framework/run/weights.h"
#include "launch/commands/commands.h"
#include "launch/commands/weight_source.h"

namespace mulligan {

void export_model(const std::string& path, const std::string& form, const std::string& output,
                  std::optional<DType> dtype, const RunOptions& run) {
  require_one_process("export");
  PluginHost host = run.plugin_host();
  WeightSource source = open_weights(path, run);
  const RunConfig& config = source.loaded.config;
  resolve_run_plugins(source.loaded, host, PluginUse::score);
  const RunPlugins plugins = make_backend_plugin(source.loaded, host, "cpu");
  LoadedModel model(*plugins.backend, config);
  model.load(source.load);

  PublishedContents contents{
      config.model, flat_settings(source.loaded), {}, config.data.tokenizer, config.eval.sequence_length};
  std::vector<std::vector<float>> values;
  for (const ParameterLayout& layout : model.layouts()) {
    values.push_back(model.store().download_as<float>(master_name(layout.spec.name)));
    const std::span dims(layout.spec.type.dims);
    contents.weights.push_back({layout.spec.name,
                                MLG_F32,
                                {dims.begin(), dims.begin() + layout.spec.type.rank},
                                std::as_bytes(std::span(values.back()))});
  }
  if (!contents.tokenizer.empty()) {
    DataIdentity now;
    now.tokenizer_sha256 = sha256_hex_of_file(contents.tokenizer);
    for (const std::string& note : require_tokenizer_of(source.origin, now, config.data))
      fmt::print("{}\n", printable(note));
    if (transform_of(Tokenizer::load(contents.tokenizer))) {
      fmt::print(
          "The tokenizer is left out: its text is transformed first, which other programs do not do.\n");
      contents.tokenizer.clear();
    }
  }
  if (form == "hf") write_hugging_face_folder(output, contents, dtype);
  if (form == "gguf") write_gguf(output, contents, dtype);
  fmt::print("{}: {} tensors of '{}'\n", printable(output), contents.weights.size(), printable(path));
}

}  // namespace mulligan
