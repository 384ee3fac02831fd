#include "tools/commands/doctor_load.h"

#include <filesystem>
#include <optional>

#include "framework/core/safetensors.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "framework/run/weights.h"
#include "tools/doctor/load_checks.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;
using doctor::CheckOutcome;
using doctor::Finding;

Finding not_made(const char* id, const char* title, const char* why, const char* hint) {
  return {id, title, CheckOutcome::skip, "not made", "", why, hint};
}

std::optional<PublishedModel> published_next_to(const fs::path& weights, const ModelConfig& model) {
  const fs::path file = weights.parent_path() / "config.json";
  if (model.family != ModelFamily::qwen2 || !fs::exists(file)) return {};
  return read_qwen2_config(file);
}

std::vector<doctor::LoadedTensor> read_back(Backend& backend, const RunConfig& config, const fs::path& file) {
  LoadedModel model(backend, config);
  model.load([&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_weights(file, store, layouts);
  });
  std::vector<doctor::LoadedTensor> tensors;
  for (const ParameterLayout& layout : model.layouts()) {
    doctor::LoadedTensor& tensor = tensors.emplace_back();
    tensor.name = layout.spec.name;
    const TensorType& type = model.store().type(layout.read_name());
    tensor.type = type.dtype == MLG_BF16 ? StoredType::bf16 : StoredType::f32;
    tensor.bytes.resize(static_cast<std::size_t>(type.bytes()));
    model.store().download(layout.read_name(), tensor.bytes);
  }
  return tensors;
}

}  // namespace

std::vector<Finding> load_findings(LoadedConfig& loaded, PluginHost& host, const std::string& name,
                                   bool all) {
  const RunConfig& config = loaded.config;
  const fs::path path = weights_file(name);
  const SafetensorsFile file(path);
  std::vector<Finding> findings;
  findings.push_back(doctor::check_coverage(file, model_parameters(config.model)));
  findings.push_back(doctor::check_architecture(file, config.model, published_next_to(path, config.model)));
  std::vector<doctor::LoadedTensor> tensors;
  if (findings.front().verdict == CheckOutcome::pass) {
    resolve_run_plugins(loaded, host, PluginUse::score);
    const RunPlugins plugins = make_backend_plugin(loaded, host);
    if (!plugins.backend->info().computes) {
      findings.push_back(not_made("D04", "bits of the source", "the backend holds no numbers",
                                  "choose one that does, --set backend.plugin=cpu"));
      return findings;
    }
    tensors = read_back(*plugins.backend, config, path);
  }
  findings.push_back(
      doctor::check_source_bits(file, tensors, static_cast<std::uint64_t>(config.run.seed), all));
  return findings;
}

}  // namespace mulligan
