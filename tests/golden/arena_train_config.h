// The configurations of the whole runs in the fixture arena-optim: constants of the published results (docs/arena.md,
// docs/matrix_optimizers.md), sizes and what was shortened as its manifest says.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "tests/golden/optim_fixture.h"
#include "tests/support/test_device.h"

namespace mulligan {

struct ScriptOptions {
  std::string backend = "cpu";
  bool bf16 = false;    // as published; otherwise everything in f32
  bool average = true;  // score the tail average where the script has one
};

// `adam`: further keys of the embedding and the head.
inline std::string adam_group(const std::string& group, double rate, const std::string& keys) {
  return fmt::format("[optimizer.{}]\nplugin = \"adamw\"\nlr = {}\neps = 1e-10\nbeta1 = 0.8\n{}\n", group,
                     rate, keys);
}

inline std::string schedule_of(const std::string& group, const std::string& keys) {
  return fmt::format("[optimizer.{}.schedule]\n{}\n", group, keys);
}

// The baseline and the two that change its matrices.
inline std::string stable_then_linear(const nlohmann::json& rates, const std::string& matrices,
                                      const std::string& keys, double decay, double share,
                                      double share_of_matrices, const std::string& embedding) {
  const auto linear = [](double fraction) {
    return fmt::format("plugin = \"warmdown\"\nfraction = {}\nmin_factor = 0.0\nby = \"step\"", fraction);
  };
  std::string text;
  for (const std::string group : {"embed", "head", "vectors"}) {
    text += adam_group(
        group, rates.at(group),
        fmt::format("beta2 = 0.95\nweight_decay = {}\n{}", decay, group == "embed" ? embedding : ""));
    text += schedule_of(group, linear(share));
  }
  text += fmt::format("[optimizer.matrices]\nplugin = \"{}\"\nlr = {}\n{}\n", matrices,
                      rates.at("matrices").get<double>(), keys);
  return text + schedule_of("matrices", linear(share_of_matrices)) + R"(
[[parameters]]
match = "blocks.*.weight"
optimizer = "matrices"
[[parameters]]
match = "*"
optimizer = "vectors"
)";
}

// Result 46, of the shortened schedule that `settings` describes.
inline std::string result_46(const nlohmann::json& rates, const std::string& settings, bool precondition,
                             const std::string& keys, const std::string& embedding) {
  const auto number = [&](const char* what) { return stated(settings, what); };
  const auto coefficient = [](double rate, double steps) { return rate / std::pow(steps, 1.2); };
  std::string text;
  const auto group = [&](const std::string& name, const std::string& adam) {
    const double rate = rates.at(name);
    text += adam_group(name, rate, adam);
    text += schedule_of(name, fmt::format("plugin = \"powercool\"\ncoefficient = {:.17g}",
                                          coefficient(rate, number("rate/"))));
  };
  group("embed", "beta2 = 0.99\n" + embedding);
  group("head", "beta2 = 0.99");
  group("gains", "beta2 = 0.99\nbias_correction = false");
  group("biases", "beta2 = 0.997\nbias_correction = false");
  group("attn_proj_bias", "beta2 = 0.9965\nbias_correction = false");
  for (const bool trust : {false, true}) {
    const std::string name = trust ? "trusted" : "matrices";
    const double rate = rates.at("matrices");
    text += fmt::format(
        "[optimizer.{}]\nplugin = \"soap_muon\"\nlr = {}\nprecondition = {}\ntrust = {}\n"
        "trust_floor_until = {}\ntrust_fade_until = {}\n{}\n",
        name, rate, precondition, trust && precondition, number("trust floor ends at"), number("fades until"),
        keys);
    text += schedule_of(name, fmt::format("plugin = \"powercool\"\ncoefficient = {:.17g}\n"
                                          "momentum_warmup_steps = {}\nmomentum_cooldown_steps = {}",
                                          coefficient(rate, number("others\\), [0-9.]*/")),
                                          number("momentum warm-up"), number("cool-down")));
  }
  text += fmt::format(
      "[wrapper]\nplugin = \"ema_nesterov\"\nrate_of = \"embed\"\nfrom_step = {}\nuntil_step = {}\n",
      number("prefill"), number("rest"));
  text += fmt::format(
      "[ema]\ndecay = {:.17g}\nfrom_step = {}\nuntil_step = {}\nblend = 0.6\nexclude = [\"embed.weight\"]\n",
      1 - 1 / number("tail average tau"), std::floor(number(", steps")), number("\\(end"));
  return text + R"(
[[parameters]]
match = "*.gains"
optimizer = "gains"
[[parameters]]
match = "blocks.*.attn.proj.bias"
optimizer = "attn_proj_bias"
[[parameters]]
match = "*.bias"
optimizer = "biases"
[[parameters]]
match = "blocks.*.attn.proj.weight"
optimizer = "trusted"
[[parameters]]
match = "blocks.*"
optimizer = "matrices"
)";
}

// The run `script` of the fixture as a configuration.
inline std::string config_of_script(const GoldenFixture& fixture, const std::string& script,
                                    const ScriptOptions& options) {
  const nlohmann::json& sizes = fixture.manifest().at("info").at("train");
  const bool whole = script.starts_with("sota");
  const std::string settings = sizes.at("settings").at(whole ? "sota" : script);
  const nlohmann::json rates =
      GoldenFixture("arena-schedule").manifest().at("info").at(whole ? "sota" : script).at("initial_lr");
  const auto size = [&](const char* name) { return sizes.at(name).get<std::int64_t>(); };
  const std::string data = (fixture.folder() / "runs/data/fineweb10B/fineweb_").string();
  const std::string device =
      options.backend == "cuda" ? fmt::format("device = \"{}\"", test_device()) : std::string("threads = 2");
  std::string text = fmt::format(
      R"([backend]
plugin = "{}"
{}
[data]
train = "{}train_*.bin"
validation = "{}val_*.bin"
tokenizer = "none"
order = "stream"
documents = "joined"
[model]
family = "modded"
vocabulary = {}
layers = {}
width = {}
heads = {}
head_width = {}
attention_scale = 0.12
[model.rope]
form = "half_truncated"
base = 1024
[model.rational_softcap]
cap = 15
[loss]
plugin = "cross_entropy"
)",
      options.backend, device, data, data, size("vocab"), size("layers"), size("width"), size("heads"),
      size("head_dim"));
  text += fmt::format(
      R"([train]
steps = {}
tokens_per_step = {}
micro_batches = {}
sequence_length = {}
loss_reduction = "sum"
compute_dtype = "{}"
[eval]
sequence_length = {}
packed_sequences = {}
tokens = {}
use_ema = {}
[[parameters]]
match = "embed.weight"
optimizer = "embed"
master_dtype = "{}"
[[parameters]]
match = "proj.weight"
optimizer = "head"
)",
      static_cast<std::int64_t>(stated(settings, "train_steps")), size("rows_per_step") * size("seq"),
      size("rows_per_step") / size("rows_per_micro_batch"), size("seq"), options.bf16 ? "bf16" : "fp32",
      size("seq"), size("val_rows"), size("val_rows") * size("seq"), options.average,
      options.bf16 ? "bf16" : "fp32");
  const std::string embedding = options.bf16 ? "state_dtype = \"master\"\nallow_stall = true" : "";
  const std::string compute = options.bf16 ? "compute_dtype = \"bf16\"\n" : "";
  if (whole) return text + result_46(rates, settings, script == "sota", compute, embedding);
  if (script == "normuon")
    return text +
           stable_then_linear(rates, "normuon", compute + "weight_decay = 0.025", 0, 0.7, 0.7, embedding);
  if (script == "muonh")
    return text + stable_then_linear(rates, "muon_h", compute, 0.001, 0.85, 1.0, embedding);
  return text +
         stable_then_linear(rates, "muon",
                            compute +
                                "weight_decay = 0.05\nmomentum_form = \"mean\"\nmomentum_dtype = \"fp32\"\n"
                                "coefficients = \"2, -1.5, 0.5\"\niterations = 12",
                            0.001, 0.7, 0.7, embedding);
}

}  // namespace mulligan
