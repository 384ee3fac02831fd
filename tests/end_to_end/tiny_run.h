// Whole training runs in seconds: a tiny model on synthetic text with a tokenizer of its own, through the
// plugins of this build.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/artifact/artifact_run.h"
#include "framework/run/evaluate_loaded.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "framework/train/train.h"
#include "tests/support/scratch_folder.h"

namespace mulligan {

// Weights as written by train.
WeightLoader weights_in(const std::filesystem::path& file);
// Scores weights as written by train on the validation shards of `loaded`.
EvalResult evaluate_weights(LoadedConfig& loaded, PluginHost& host, const std::filesystem::path& weights,
                            const ConsoleOptions& options = {});
// Scores an artifact by its own configuration with `overrides` (as of --set) on top.
EvalResult evaluate_artifact(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                             PluginHost& host, const ConsoleOptions& options = {});

namespace end_to_end {

// As of --set.
using Overrides = std::vector<std::string>;
// `base`, and then `more`.
Overrides with(Overrides base, const Overrides& more);

inline constexpr int tiny_vocabulary = 320;

// Text whose words follow few rules, so that a small model soon predicts it far better than chance.
std::string synthetic_document(std::uint64_t seed);

// Prepared data of synthetic documents in a folder of its own; they are prepared once per process and copied.
class TinyRun {
 public:
  // 300 documents; the first `validation_documents` are for validation. `observers` watch train().
  explicit TinyRun(int validation_documents = 20, std::vector<MakeObserver> observers = {});

  // The configuration (every feature of the model on, two optimisers) after `overrides`
  // such as "train.steps=10".
  LoadedConfig config(const std::vector<std::string>& overrides) const;
  // The same without data, for what only builds programs.
  static LoadedConfig config_without_data(const std::vector<std::string>& overrides);
  // Trains it without console output, in a run directory of its own.
  RunResult train(const std::vector<std::string>& overrides);
  // The same in that run directory, resumed from `resume`.
  RunResult train_in(const std::string& directory, const Overrides& overrides, const std::string& resume = "",
                     bool overwrite = false);
  // Data of other documents below the folder, with a tokenizer of the same size: fineweb_*.bin,
  // tokenizer.model. Made at the first call.
  std::filesystem::path other_data() const;
  // A fresh run directory below the folder.
  std::string next_directory();

  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  test_support::ScratchFolder folder_;
  std::vector<MakeObserver> observers_;
  int runs_ = 0;
};

// The one that tests share.
TinyRun& tiny();

// Trains what `loaded` says, without console output.
RunResult train_loaded(LoadedConfig& loaded, const std::string& resume = "");
// Quantises what a run has left, or `file`, as its configuration says with quantize_section and `overrides`.
MadeArtifact quantize_run(const RunResult& run, const std::filesystem::path& output,
                          const Overrides& overrides = {}, std::filesystem::path file = {});

// Makes the tiny model one of the family modded, whose matrices are single ones, under `optimizer`.
inline std::vector<std::string> of_single_matrices(const std::string& optimizer) {
  return {"model.family=modded",
          "model.kv_heads=4",
          "model.mlp_hidden=128",
          "model.rope.dims=8",
          "model.rope.form=half_truncated",
          "model.loop.first=0",
          "model.loop.last=0",
          "model.loop.extra_passes=0",
          "model.loop.start_fraction=0.0",
          "model.lanes.parallel_start=0",
          "loss.plugin=cross_entropy",
          "parameters.0.match=blocks.*.weight",
          "optimizer.matrices.lr=0.02",
          "optimizer.matrices.plugin=" + optimizer};
}

// How the tiny model is quantised, as TOML to be added to a run's configuration: gptq over 3 batches
// of 4 rows.
inline constexpr const char* quantize_section = R"(
[quantize]
plugin = "gptq"
calibration_batches = 3
calibration_rows = 4
[[quantize.tensors]]
match = "tok_emb.weight"
format = "int"
bits = 7
clip_sigmas = 15.0
[[quantize.tensors]]
match = "*.attn_gate_w"
format = "int8_row"
[[quantize.tensors]]
match = "blocks.*.weight"
format = "int"
bits = 6
clip_sigmas = 12.0
[[quantize.tensors]]
match = "*"
format = "fp16"
)";

// A fresh run directory of `tiny` with nothing in it but the checkpoint of `step` that the run in `directory` has left.
// Fails the test where there is none: a checkpoint that is due while another is being written is left out, so a
// run names one step for certain, with checkpoint.every_steps = step.
std::string only_checkpoint(TinyRun& tiny, const std::string& directory, std::int64_t step);

// The lines of metrics.jsonl in a run directory that tell of one kind of event.
std::vector<nlohmann::json> events_of(const std::filesystem::path& directory, const std::string& kind);

// result.json of a run directory.
nlohmann::json result_of(const std::filesystem::path& directory);

// Of a run, `a`, and of one that was resumed or made again: the same losses, score, accounts and weights, to the bit.
void expect_same_run(const std::string& straight, const RunResult& a, const std::string& resumed,
                     const RunResult& b);

// A tensor of the weights that a run has left.
std::vector<float> weights_of(const RunResult& result, const std::string& name);

// The lines of a text file.
std::vector<std::string> lines_of(const std::filesystem::path& file);

}  // namespace end_to_end
}  // namespace mulligan
