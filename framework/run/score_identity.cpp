#include "framework/run/score_identity.h"

#include "framework/core/file.h"
#include "framework/graph/tensor_store.h"
#include "framework/report/machine.h"

namespace mulligan {
namespace {

std::string_view bytes_of(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

}  // namespace

ScoreIdentity score_identity(const LoadedConfig& loaded, ScoreCommand command, const PluginHost& host,
                             const TensorStore& store, const std::vector<ParameterLayout>& layouts,
                             std::span<const std::uint16_t> tokens) {
  std::string settings, weights, program = build_commit() + '\n';
  for (const auto& [key, value] : score_settings(loaded, command)) settings += key + " = " + value + '\n';
  for (const ParameterLayout& layout : layouts) {
    const std::string name = master_name(layout.spec.name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(store.type(name).bytes()));
    store.download(name, bytes);
    weights += name + ' ' + sha256_hex(bytes_of(bytes)) + '\n';
  }
  for (const PluginHandle& plugin : host.loaded())
    program += std::string(plugin->name()) + ' ' + plugin->sha256() + '\n';
  const std::string& tokenizer = loaded.config.data.tokenizer;
  return {{"the settings", sha256_hex(settings)},
          {"the weights", sha256_hex(weights)},
          {"the validation tokens", sha256_hex(bytes_of(tokens))},
          {"the tokenizer", tokenizer.empty() ? "none" : sha256_hex_of_file(tokenizer)},
          {"the program or its plugins", sha256_hex(program)}};
}

}  // namespace mulligan
