// mulligan checkpoint show|verify|diff|export|import
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/compare.h"
#include "framework/checkpoint/weight_exchange.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/sha256.h"
#include "framework/data/tokenizer.h"
#include "framework/model/parameters.h"
#include "framework/run/run_files.h"
#include "framework/run/weight_origin.h"
#include "framework/run/weights.h"
#include "framework/step/evaluation_weights.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view master_prefix = "master/";
constexpr std::string_view average_prefix = "ema/";

struct CheckpointArguments {
  std::string path, other, output, map, dtype, form = "safetensors";
  bool averaged = false;
  RunOptions run;
};

void show(const std::string& path) {
  const Checkpoint checkpoint = find_checkpoint(path);
  const CheckpointManifest& m = checkpoint.manifest;
  const auto row = [](std::string_view what, const std::string& value) {
    fmt::print("{:<16} {}\n", what, printable(value));
  };
  row("checkpoint", checkpoint.path.string());
  row("run", fmt::format("{}, commit {}, seed {}, {} ranks", m.run, m.commit, m.seed, m.world_size));
  row("step",
      fmt::format("{}, {} tokens, {:.1f} s of training", m.step, m.tokens, m.progress.elapsed_seconds));
  if (m.loss.run.steps_counted > 0) {
    row("train loss", fmt::format("{:.6f} nats, mean of {} steps [{}, {})", m.loss.run.mean_nats(),
                                  m.loss.run.steps_counted, m.loss.step_first, m.loss.step_last));
  }
  row("data", fmt::format("{} spans of {} + 1 tokens read, {} shards", m.data.position.consumed_spans,
                          m.data.row_tokens, m.identity.train.shards.size()));
  if (!m.identity.empty()) {
    row("data digests",
        fmt::format("tokenizer {}, training {}, validation {}", short_digest(m.identity.tokenizer_sha256),
                    short_digest(m.identity.train.sha256), short_digest(m.identity.validation.sha256)));
  }
  row("averages", m.ema_decay > 0 ? fmt::format("decay {}", m.ema_decay) : std::string("none"));
  row("configuration", "sha256 " + m.config_sha256);
  for (const CheckpointPlugin& plugin : m.plugins) {
    row("plugin", fmt::format("[{}] {} '{}', state version {}, sha256 {}", plugin.section, plugin.kind,
                              plugin.name, plugin.state_version, plugin.sha256.substr(0, 16)));
  }
  for (const CheckpointFile& file : m.files) {
    row("file", fmt::format("{} {} bytes, sha256 {}", file.name, file.bytes, file.sha256));
  }
  std::size_t width = 0;
  for (const StoredTensor& tensor : checkpoint.tensors.tensors())
    width = std::max(width, printable(tensor.name).size());
  for (const StoredTensor& tensor : checkpoint.tensors.tensors()) {
    fmt::print("{:<{}} {:<5} [{}]\n", printable(tensor.name), width, stored_name(tensor.type),
               fmt::join(tensor.shape, ", "));
  }
}

// That one is damaged is said only of what is one.
void require_checkpoint(const fs::path& path) {
  if (!fs::exists(path))
    throw data_error("there is no '{}'; give a checkpoint or a run directory.", path.string());
  if (fs::exists(path / "manifest.json") || path.filename().string().starts_with("step_")) return;
  throw data_error("'{}' holds no checkpoint; give one, or the directory of a run that has some.",
                   path.string());
}

// One checkpoint, or all of a run. Every one is looked at before the exit code reports the damaged ones.
void verify(const std::string& path) {
  std::vector<fs::path> folders;
  for (const fs::path& directory : {fs::path(path), fs::path(path) / "checkpoints"}) {
    for (const CheckpointEntry& entry : list_checkpoints(directory)) folders.push_back(entry.path);
  }
  if (folders.empty()) {
    require_checkpoint(path);
    folders.emplace_back(path);
  }
  std::vector<std::string> damaged;
  for (const fs::path& folder : folders) {
    try {
      const Checkpoint checkpoint = open_checkpoint(folder);
      fmt::print("ok       {}, step {}, {} tensors\n", printable(folder.string()), checkpoint.manifest.step,
                 checkpoint.tensors.tensors().size());
    } catch (const Error& error) {
      fmt::print("damaged  {}\n", printable(folder.string()));
      damaged.emplace_back(error.what());
    }
  }
  if (damaged.size() == 1) throw data_error("{}", damaged.front());
  if (!damaged.empty()) {
    throw data_error("{} of {} checkpoints are damaged; of the first: {}", damaged.size(), folders.size(),
                     damaged.front());
  }
}

SafetensorsFile tensors_of(const std::string& path) {
  if (fs::path(path).extension() == ".safetensors") return SafetensorsFile(path);
  return find_checkpoint(path).tensors;
}

void diff(const std::string& first, const std::string& second) {
  const SafetensorsFile a = tensors_of(first), b = tensors_of(second);
  const std::vector<TensorDifference> differences = compare_tensors(a, b);
  for (const TensorDifference& difference : differences)
    fmt::print("{}: {}\n", printable(difference.name), printable(difference.what));
  if (differences.empty()) {
    fmt::print("identical: {} tensors\n", a.tensors().size());
    return;
  }
  throw run_error("'{}' and '{}' differ in {} tensors.", first, second, differences.size());
}

std::optional<DType> dtype_of(const std::string& word) {
  if (word == "f32") return MLG_F32;
  if (word == "bf16") return MLG_BF16;
  if (word == "f16") return MLG_F16;
  return {};
}

// The tensor of parameter `name` that would be scored: its evaluation weights where the optimiser has
// any, else `tensor`.
StoredTensor scored_in_place_of(StoredTensor tensor, const std::string& name, const SafetensorsFile& source) {
  if (const StoredTensor* scored = source.find(evaluation_name(name))) tensor = *scored;
  tensor.name = name;
  return tensor;
}

void export_checkpoint(const CheckpointArguments& arguments) {
  if (arguments.form != "safetensors") {
    if (!arguments.map.empty() || arguments.averaged)
      throw config_error(
          "--map and --averaged are for --to safetensors; the other forms have names of their own.");
    return export_model(arguments.path, arguments.form, arguments.output, dtype_of(arguments.dtype),
                        arguments.run);
  }
  const bool is_file = fs::path(arguments.path).extension() == ".safetensors";
  const SafetensorsFile source = tensors_of(arguments.path);
  const std::string_view prefix = arguments.averaged ? average_prefix : master_prefix;
  std::vector<StoredTensor> weights;
  for (StoredTensor tensor : source.tensors()) {
    if (!is_file && !tensor.name.starts_with(prefix)) continue;
    if (!is_file) tensor = scored_in_place_of(tensor, tensor.name.substr(prefix.size()), source);
    weights.push_back(std::move(tensor));
  }
  if (weights.empty()) {
    throw data_error("'{}' holds no {} weights{}.", arguments.path,
                     arguments.averaged ? "averaged" : "master",
                     arguments.averaged ? "; leave out --averaged" : "");
  }
  std::optional<NameMap> map;
  if (!arguments.map.empty()) map = read_name_map(arguments.map);
  std::map<std::string, std::string> metadata{{"format", "pt"}, {"source", arguments.path}};
  const DataIdentity data =
      is_file ? origin_of_weights(arguments.path).data : find_checkpoint(arguments.path).manifest.identity;
  if (!data.empty()) metadata[data_identity_key] = to_json_text(data);
  fmt::print(
      "{}: {} tensors\n", arguments.output,
      export_weights(weights, map ? &*map : nullptr, dtype_of(arguments.dtype), arguments.output, metadata));
}

// What imported weights say of their data: the tokenizer that the configuration names. A file that this
// program exported knows more, and must agree.
DataIdentity imported_data(const SafetensorsFile& file, const LoadedConfig& loaded) {
  const std::string& tokenizer = loaded.config.data.tokenizer;
  DataIdentity now;
  if (!tokenizer.empty()) now.tokenizer_sha256 = Tokenizer::load(tokenizer).sha256();
  const WeightOrigin origin = origin_of_metadata(file.metadata(), file.path().string());
  if (origin.data.empty()) return now;
  require_same_tokenizer({fmt::format("'{}'", origin.name), origin.data}, now, tokenizer);
  return origin.data;
}

// For weights that have the names of the model already, as those of the family qwen2 do.
NameMap same_names(const std::vector<WeightSpec>& model) {
  NameMap map;
  map.source = "of equal names";
  for (const WeightSpec& spec : model) map.pairs.push_back({spec.name, spec.name});
  return map;
}

void import_checkpoint(const CheckpointArguments& arguments) {
  PluginHost host = arguments.run.plugin_host();
  const LoadedConfig loaded = load_complete_config(arguments.run.config, arguments.run.overrides, host);
  std::vector<WeightSpec> model;
  for (const ParameterSpec& spec : model_parameters(loaded.config.model)) {
    model.push_back(
        {spec.name, {spec.type.dims.begin(), spec.type.dims.begin() + spec.type.rank}, spec.matrix});
  }
  const fs::path index = fs::path(arguments.path) / "model.safetensors.index.json";
  const std::vector<SafetensorsFile> source =
      fs::exists(index) ? open_indexed(index) : std::vector{SafetensorsFile(weights_file(arguments.path))};
  const NameMap map = arguments.map.empty() ? same_names(model) : read_name_map(arguments.map);
  fmt::print("{}: {} tensors\n", arguments.output,
             import_weights(source, map, model, dtype_of(arguments.dtype).value_or(MLG_F32), arguments.output,
                            weights_metadata(loaded, "imported", imported_data(source.front(), loaded))));
}

}  // namespace

void add_checkpoint_command(CLI::App& app) {
  CLI::App* checkpoint =
      app.add_subcommand("checkpoint", "Shows, verifies, compares, exports and imports checkpoints");
  checkpoint->callback([checkpoint] { require_command(*checkpoint); });
  auto arguments = std::make_shared<CheckpointArguments>();
  const auto add = [&](const char* name, const char* about, const char* path_help) {
    CLI::App* command = checkpoint->add_subcommand(name, about);
    command->add_option("path", arguments->path, path_help)->required()->type_name("PATH");
    return command;
  };
  const auto add_exchange = [&](CLI::App* command, const char* output, const char* output_help,
                                const char* dtype_help) {
    command->add_option(output, arguments->output, output_help)->required()->type_name("FILE");
    command->add_option("--dtype", arguments->dtype, dtype_help)
        ->check(CLI::IsMember({"f32", "bf16", "f16"}));
    command->add_option("--map", arguments->map, "Name map (TOML); without it names are the same")
        ->type_name("FILE");
  };

  add("show", "Prints what a checkpoint holds", "Checkpoint or run directory")->callback([arguments] {
    show(arguments->path);
  });
  add("verify", "Checks every byte of a checkpoint, or of all of a run", "Checkpoint or run directory")
      ->callback([arguments] { verify(arguments->path); });

  CLI::App* compare =
      add("diff", "Compares tensors bit by bit", "Checkpoint, run directory or .safetensors file");
  compare->add_option("other", arguments->other, "The one to compare with")->required()->type_name("PATH");
  compare->callback([arguments] { diff(arguments->path, arguments->other); });

  CLI::App* out =
      add("export", "Writes the weights for other programs",
          "Checkpoint, run directory or .safetensors file of weights; for hf and gguf also an artifact");
  add_exchange(out, "output,--out", "File to write, or folder (hf)",
               "dtype of the weights; without it each tensor's own");
  out->add_option(
         "--to", arguments->form,
         "safetensors: the masters of a checkpoint; what is scored: hf (folder for transformers) or gguf")
      ->check(CLI::IsMember({"safetensors", "hf", "gguf"}));
  out->add_option("--config", arguments->run.config,
                  "Configuration, for weights without their own (hf, gguf)")
      ->type_name("FILE");
  arguments->run.declare(*out);
  out->add_flag("--averaged", arguments->averaged, "The averaged weights of a checkpoint");
  out->callback([arguments] { export_checkpoint(*arguments); });

  CLI::App* in = add("import", "Makes a weights file of another trainer's safetensors file",
                     "Their .safetensors file, or a folder with model.safetensors");
  add_exchange(in, "--out", "Safetensors file to write", "dtype of the file (default: f32)");
  in->add_option("--config", arguments->run.config, "Configuration of the model (TOML)")
      ->required()
      ->type_name("FILE");
  arguments->run.declare(*in);
  in->callback([arguments] { import_checkpoint(*arguments); });
}

}  // namespace mulligan
