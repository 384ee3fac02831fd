#include "tools/commands/doctor_load.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "framework/core/printable.h"
#include "framework/core/safetensors.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "framework/run/weights.h"
#include "tools/doctor/load_checks.h"
#include "tools/doctor/parity.h"

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

doctor::ParityWeights parity_weights(const LoadedConfig& loaded, const std::string& name) {
  const auto seed = static_cast<std::uint64_t>(loaded.config.run.seed);
  if (name.empty())
    return [seed](const ParameterSpec& spec) { return doctor::large_random_weights(spec, seed); };
  const std::vector<ParameterSpec> specs = model_parameters(loaded.config.model);
  std::vector<std::vector<float>> values = read_weights(weights_file(name), specs);
  auto by_name = std::make_shared<std::map<std::string, std::vector<float>>>();
  for (std::size_t i = 0; i < specs.size(); ++i) (*by_name)[specs[i].name] = std::move(values[i]);
  return [by_name](const ParameterSpec& spec) { return by_name->at(spec.name); };
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

std::vector<Finding> parity_findings(LoadedConfig& loaded, PluginHost& host,
                                     const ParityArguments& arguments) {
  const RunConfig& config = loaded.config;
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunPlugins tested = make_backend_plugin(loaded, host);
  if (!tested.backend->info().computes) {
    return {not_made("D12", "forward pass", "the backend computes nothing",
                     "choose one that does, --set backend.plugin=cuda --set backend.device=emulated")};
  }
  const doctor::ParityWeights weights = parity_weights(loaded, arguments.weights);
  const DType compute = to_dtype(scored_dtype(config));
  doctor::ParityReport report;
  if (arguments.against.ends_with(".safetensors")) {
    report = doctor::compare_with_dump(config.model, weights, SafetensorsFile(arguments.against),
                                       *tested.backend, compute, arguments.inject);
  } else {
    const RunPlugins reference = make_backend_plugin(loaded, host, arguments.against);
    report =
        doctor::compare_backends(config.model, weights,
                                 doctor::random_parity_inputs(arguments.tokens, config.model.vocabulary,
                                                              static_cast<std::uint64_t>(config.run.seed)),
                                 *reference.backend, *tested.backend, compute);
  }
  if (arguments.verbose) fmt::print("{}", printable(doctor::parity_text(report), LineBreaks::kept));
  return {doctor::judge_parity(report, arguments.against)};
}

}  // namespace mulligan
