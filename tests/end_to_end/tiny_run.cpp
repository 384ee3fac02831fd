#include "tests/end_to_end/tiny_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "framework/artifact/artifact_model.h"
#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/file.h"
#include "framework/core/safetensors.h"
#include "framework/run/run_ranks.h"
#include "framework/run/weights.h"
#include "tests/support/plugins.h"
#include "tools/prepare/prepare.h"

namespace mulligan::end_to_end {
namespace {

constexpr const char* tiny_config = R"(
[run]
seed = 7
threads = 1

[model]
vocabulary = 320
layers = 4
width = 32
heads = 4
kv_heads = 2
mlp_hidden = 64

[model.rope]
dims = 4

[model.loop]
first = 1
last = 2
extra_passes = 1
start_fraction = 0.5

[model.lanes]
parallel_start = 3

[loss]
plugin = "softcap_ce"

[schedule]
plugin = "constant"

[optimizer.matrices]
plugin = "muon"
lr = 0.02

[optimizer.rest]
plugin = "adamw"
lr = 0.01

[[parameters]]
match = "*_bank"
optimizer = "matrices"

[[parameters]]
match = "*"
optimizer = "rest"

[train]
steps = 10
tokens_per_step = 256
sequence_length = 64
clip_norm = 1.0
log_every = 5

[doctor]
level = "off"

[eval]
sequence_length = 64
packed_sequences = 4
)";

void prepare_documents(std::uint64_t first, int validation_documents, const std::filesystem::path& text,
                       const std::filesystem::path& data) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    write_file_atomically(text / fmt::format("{}.txt", i), synthetic_document(first + i));
  }
  PrepareOptions options;
  options.inputs = {text};
  options.output = data;
  options.vocab_size = tiny_vocabulary;
  options.validation_documents = validation_documents;
  options.tokens_per_shard = 8000;
  prepare(options);
}

// The prepared data of all objects with so many documents for validation.
std::filesystem::path prepared_once(int validation_documents) {
  static const test_support::ScratchFolder folder;
  const std::filesystem::path data = folder.path() / std::to_string(validation_documents);
  if (!std::filesystem::exists(data)) {
    prepare_documents(0, validation_documents,
                      folder.path() / ("text" + std::to_string(validation_documents)), data);
  }
  return data;
}

}  // namespace

Overrides with(Overrides base, const Overrides& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

TinyRun& tiny() {
  static TinyRun run;
  return run;
}

std::string synthetic_document(std::uint64_t seed) {
  static constexpr const char* colours[] = {"red", "green", "blue", "black", "white"};
  static constexpr const char* animals[] = {"cat", "dog", "horse", "bird"};
  static constexpr const char* places[] = {"house", "river", "forest", "old bridge"};
  std::mt19937_64 random(seed);
  const auto pick = [&](const auto& words) { return words[random() % std::size(words)]; };
  std::string text;
  const std::size_t sentences = 3 + random() % 12;
  for (std::size_t i = 0; i < sentences; ++i) {
    text += fmt::format("The {} {} walks to the {} near the {}. ", pick(colours), pick(animals),
                        pick(colours), pick(places));
  }
  return text;
}

TinyRun::TinyRun(int validation_documents, std::vector<MakeObserver> observers)
    : observers_(std::move(observers)) {
  std::filesystem::copy(prepared_once(validation_documents), folder() / "data",
                        std::filesystem::copy_options::recursive);
}

std::filesystem::path TinyRun::other_data() const {
  const std::filesystem::path data = folder() / "other_data";
  if (!std::filesystem::exists(data)) prepare_documents(1000, 20, folder() / "other_text", data);
  return data;
}

std::string TinyRun::next_directory() {
  return (folder() / ("run" + std::to_string(runs_++))).string();
}

LoadedConfig TinyRun::config(const std::vector<std::string>& overrides) const {
  return parse_run_config(tiny_config, "tiny.toml",
                          with({"data.train=" + (folder() / "data/fineweb_train_*.bin").string(),
                                "data.validation=" + (folder() / "data/fineweb_val_*.bin").string(),
                                "data.tokenizer=" + (folder() / "data/tokenizer.model").string()},
                               overrides));
}

LoadedConfig TinyRun::config_without_data(const std::vector<std::string>& overrides) {
  return parse_run_config(
      tiny_config, "tiny.toml",
      with({"data.train=none", "data.validation=none", "data.tokenizer=none"}, overrides));
}

RunResult TinyRun::train(const std::vector<std::string>& overrides) {
  return train_in(next_directory(), overrides);
}

RunResult TinyRun::train_in(const std::string& directory, const Overrides& overrides,
                            const std::string& resume, bool overwrite) {
  LoadedConfig loaded = config(with({"run.directory=" + directory}, overrides));
  TrainOptions options;
  options.console = nullptr;
  options.observers = observers_;
  options.resume = resume;
  options.overwrite = overwrite;
  return mulligan::train(loaded, test_plugin_host(), options);
}

RunResult train_loaded(LoadedConfig& loaded, const std::string& resume) {
  TrainOptions options;
  options.console = nullptr;
  options.resume = resume;
  return mulligan::train(loaded, test_plugin_host(), options);
}

MadeArtifact quantize_run(const RunResult& run, const std::filesystem::path& output,
                          const Overrides& overrides, std::filesystem::path file) {
  LoadedConfig loaded = parse_run_config(read_file(run.directory / "config.toml") + quantize_section,
                                         "with quantize", overrides);
  QuantizeRunOptions options;
  options.console = nullptr;
  options.output = output;
  if (file.empty()) file = run.directory / "weights.safetensors";
  return quantize_weights(loaded, test_plugin_host(), file, options);
}

std::string only_checkpoint(TinyRun& tiny, const std::string& directory, std::int64_t step) {
  namespace fs = std::filesystem;
  const auto saved = list_checkpoints((fs::path(directory) / "checkpoints").string());
  const auto entry = std::ranges::find(saved, step, &CheckpointEntry::step);
  EXPECT_NE(entry, saved.end()) << "no checkpoint of step " << step << " in " << directory;
  std::string stopped = tiny.next_directory();
  const fs::path checkpoints = fs::path(stopped) / "checkpoints";
  fs::create_directories(checkpoints);
  if (entry != saved.end())
    fs::copy(entry->path, checkpoints / entry->path.filename(), fs::copy_options::recursive);
  return stopped;
}

std::vector<nlohmann::json> events_of(const std::filesystem::path& directory, const std::string& kind) {
  std::vector<nlohmann::json> found;
  for (const std::string& line : lines_of(directory / "metrics.jsonl")) {
    nlohmann::json event = nlohmann::json::parse(line);
    if (event.at("event") == kind) found.push_back(std::move(event));
  }
  return found;
}

nlohmann::json result_of(const std::filesystem::path& directory) {
  return nlohmann::json::parse(read_file(directory / "result.json"));
}

void expect_same_run(const std::string& straight, const RunResult& a, const std::string& resumed,
                     const RunResult& b) {
  const auto first = static_cast<std::size_t>(b.first_step);
  ASSERT_EQ(a.step_loss_nats.size(), first + b.step_loss_nats.size());
  for (std::size_t i = 0; i < b.step_loss_nats.size(); ++i) {
    if (a.step_loss_nats[first + i] != b.step_loss_nats[i])
      FAIL() << "losses differ at step " << first + i + 1;
  }
  EXPECT_EQ(a.initial_loss_nats, b.initial_loss_nats);
  EXPECT_EQ(a.final_loss_nats, b.final_loss_nats);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.validation->val_loss_nats, b.validation->val_loss_nats);
  const SafetensorsFile one(std::filesystem::path(straight) / "weights.safetensors"),
      other(std::filesystem::path(resumed) / "weights.safetensors");
  for (const StoredTensor& tensor : one.tensors()) {
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, other.at(tensor.name).bytes)) << tensor.name;
  }
}

std::vector<float> weights_of(const RunResult& result, const std::string& name) {
  return SafetensorsFile(result.directory / "weights.safetensors").at(name).copy<float>();
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace mulligan::end_to_end

namespace mulligan {

WeightLoader weights_in(const std::filesystem::path& file) {
  return [file](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_weights(file, store, layouts);
  };
}

EvalResult evaluate_weights(LoadedConfig& loaded, PluginHost& host, const std::filesystem::path& weights,
                            const ConsoleOptions& options) {
  RunRanks alone;
  return evaluate_loaded(loaded, host, origin_of_weights(weights), weights_in(weights), options, {}, alone);
}

EvalResult evaluate_artifact(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                             PluginHost& host, const ConsoleOptions& options) {
  OpenedArtifact opened = open_artifact(path, overrides);
  const auto load = [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_artifact(opened.artifact, opened.loaded.config.model, store, layouts);
  };
  RunRanks alone;
  return evaluate_loaded(opened.loaded, host, opened.origin, load, options, {}, alone);
}

}  // namespace mulligan
