// The reference of the core keys.
#include <fmt/format.h>

#include <algorithm>

#include "framework/config/config_report.h"
#include "framework/config/core_schema.h"
#include "framework/config/model_elements.h"

namespace mulligan {
namespace {

// The keys of RunConfig that stand directly in `table`, with their bare names.
std::vector<KeySpec> keys_of_table(const std::string& table) {
  std::vector<KeySpec> keys;
  for (const KeySpec& key : schema_of<RunConfig>().keys()) {
    const size_t dot = key.name.rfind('.');
    if (key.name.substr(0, dot) != table) continue;
    keys.push_back(key);
    keys.back().name = key.name.substr(dot + 1);
  }
  return keys;
}

std::vector<KeySpec> plugin_keys(const std::string& plugin, std::span<const KeySpec> extra = {}) {
  std::vector<KeySpec> keys = plugin_table_keys(plugin, extra);
  keys.front().is_required = plugin.empty();
  return keys;
}

std::string default_text(const KeySpec& key) {
  if (key.is_required) return "required";
  if (!key.derivation.empty()) return key.derivation;
  return fmt::format("`{}`", to_toml(key.default_value));
}

constexpr const char* kReferenceIntroduction =
    R"(# Configuration keys

Written by `mulligan config docs` from the declarations in framework/config/core_schema.cpp; a test keeps this file equal to
them. The keys of plugins are not listed here: `mulligan plugins NAME` prints them.

- A file may start with `extends = "base.toml"` (relative to itself, chains allowed): its tables are laid over the base's,
  key by key; lists, and so all `[[parameters]]` rows, are replaced as a whole. A plugin table that names another plugin than
  the base's replaces the base's table, since the old plugin's keys mean nothing to the new one; rows such as `[[quantize.tensors]]` stay.
  `run.name`, `run.directory` and `checkpoint.directory` are not inherited: a variant is a run of its own, named after its file.
- `--set section.key=value` overrides one key; the value is TOML (`3`, `0.5`, `true`, `[1, 2]`), and a bare word is a string.
  `--set parameters.0.lr_multiplier=2` changes a row.
- The keys below are the complete set: anything else is an error that names the nearest known key.
- `mulligan config print FILE` shows every resolved key with its origin, `mulligan config diff A B` what differs.
)";

}  // namespace

std::vector<KeySection> core_sections() {
  std::vector<KeySection> sections = {
      {"[run]", "The run as a whole."},
      {"[backend]", "Plugin table: where tensors live and kernels run.", plugin_keys("cpu")},
      {"[[backend.kernels]]",
       "Kernels of the backend, or of a plugin for it, that are replaced by compiled ones. A row that names "
       "no kernel of the run is an error.",
       schema_of<KernelRow>().keys()},
      {"[data]",
       "Token shards and their tokenizer; paths are relative to the folder the program is started in."},
      {"[[data.mix]]",
       "Optional, in place of data.train: several bodies of training text, read in a fixed ratio "
       "(docs/phases.md).",
       schema_of<DataMixRow>().keys()},
      {"[model]", "Shape and switches of the language model."},
      {"[model.rope]", "Rotary position embedding."},
      {"[model.loop]", "Depth recurrence: some layers run several times."},
      {"[model.lanes]", "Parallel attention and MLP lanes in the last layers."},
      {"[init]", "The weights at the start of training."},
      {"[[init.values]]",
       "Optional: initial values that are drawn otherwise than the model's family does; the first row that "
       "matches a parameter. A row that matches none is an error.",
       schema_of<InitialValuesRow>().keys()},
      {"[loss]", "Plugin table: the training loss.", plugin_keys("softcap_ce")},
      {"[schedule]", "Plugin table: the learning-rate schedule of all optimisers without one of their own.",
       plugin_keys("warmdown", schema_of<ScheduleOptions>().keys())},
      {"[communicator]",
       "Plugin table, optional: what moves tensors between the ranks of a run. Without it one rank has "
       "none, several take `nccl` on GPUs and `gloo` elsewhere; with it one rank takes it, too.",
       plugin_keys("")},
      {"[optimizer.NAME]", "Plugin table, one per optimiser; [[parameters]] refers to it by NAME.",
       plugin_keys("", schema_of<OptimizerConfig>().keys())},
      {"[optimizer.NAME.schedule]",
       "Plugin table: a schedule for this optimiser alone, in place of [schedule].", plugin_keys("")},
      {"[wrapper]",
       "Plugin table, optional: what is done around the updates of all optimisers (docs/matrix_optimizers.md).",
       plugin_keys("")},
      {"[[parameters]]",
       "The parameter table: for each parameter the first row that matches its name. A row that takes no "
       "parameter and a parameter that no row takes are errors.",
       schema_of<ParameterRow>().keys()},
      {"[train]", "Budget, batch, precision and clipping."},
      {"[[phase]]",
       "Optional: stretches of training, each with its own way to make a step; without them a "
       "model with depth recurrence has two, `plain` until model.loop.start_fraction and `looped`.",
       schema_of<Phase>().keys()},
      {"[phase.backend]",
       "Plugin table, optional, below its [[phase]] row: where that phase runs; the state of training is "
       "handed over.",
       plugin_keys("")},
      {"[train.warmup]",
       "Steps before the clock starts; weights, optimiser state and data position are restored."},
      {"[parallel]", "What the ranks of a run share."},
      {"[ema]", "Exponential moving average of all weights in fp32."},
      {"[checkpoint]",
       "Complete states of training, from which `mulligan train --resume` continues bit for bit."},
      {"[metrics]", "What is reported in addition."},
      {"[doctor]", "What is checked when a run starts (docs/doctor.md)."},
      {"[noise]", "Noise in the gradients, for experiments (docs/phases.md)."},
      {"[loss_scale]", "The scale of the loss while it is differentiated, for fp16 (docs/phases.md)."},
      {"[eval]", "How validation text is scored."},
      {"[quantize]",
       "Plugin table, optional: how the trained weights become an artifact. Without it a run makes none.",
       plugin_keys("gptq", schema_of<QuantizeOptions>().keys())},
      {"[[quantize.tensors]]",
       "How each tensor is stored: the first row that matches its name. A row that takes no tensor and a "
       "tensor that no row takes are errors.",
       schema_of<QuantizeTensorRow>().keys()},
      {"[ttt]", "Optional: test-time training while the validation set is scored. Without it there is none.",
       schema_of<TttConfig>().keys()},
      {"[ttt.adapters]", "Plugin table: what adapts to each document.", plugin_keys("doc_lora")},
      {"[ttt.optimizer]",
       "Plugin table: the optimiser of the adapters, whose state starts empty for each batch of documents.",
       plugin_keys("adamw", schema_of<AdapterRate>().keys())},
      {"[ttt.transform]",
       "Plugin table, optional: what changes the model's distribution before a token "
       "is scored; what is trained on stays the plain loss (docs/evaluation.md).",
       plugin_keys("ngram_tilt", schema_of<TransformOptions>().keys())},
      {"[ttt.base]",
       "Plugin table, optional: how the base model is trained between batches on documents scored so far; "
       "goes with ttt.prefix_documents.",
       plugin_keys("global_sgd")},
      {"[ttt.base.optimizer]",
       "Plugin table: the optimiser of that training, whose state starts empty "
       "for each pass. Where it has a key momentum, it is what [ttt.base] says.",
       plugin_keys("sgd")},
      {"[ensemble]",
       "Plugin table, optional: models that `mulligan probe ensemble` makes of a run's weights and scores "
       "together (docs/numerics/ensembles.md).",
       plugin_keys("stochastic_rounding", schema_of<EnsembleOptions>().keys())},
      {"[ledger]", "Limits of the run."},
      {"[arena]", "A benchmark whose rules the run is held to (docs/arena.md)."},
  };
  std::vector<KeySection> elements;
  for (const ElementDeclaration& element : declared_elements()) {
    if (!element.table.empty()) elements.push_back({"[model." + element.name + "]", element.table});
  }
  const auto lanes = std::ranges::find(sections, "[model.lanes]", &KeySection::header);
  sections.insert(lanes + 1, elements.begin(), elements.end());
  for (KeySection& section : sections) {
    if (section.keys.empty())
      section.keys = keys_of_table(section.header.substr(1, section.header.size() - 2));
  }
  return sections;
}

std::vector<std::string> core_key_names() {
  std::vector<std::string> names;
  for (const KeySection& section : core_sections()) {
    std::string table = section.header;
    std::erase_if(table, [](char c) { return c == '[' || c == ']'; });
    for (const KeySpec& key : section.keys) names.push_back(table + "." + key.name);
  }
  std::ranges::sort(names);
  return names;
}

// A table within another follows it as rows under its header.
std::string write_reference() {
  std::string text = kReferenceIntroduction, within = " ";
  for (const KeySection& section : core_sections()) {
    const std::string name = section.header.substr(section.header.find_last_of('[') + 1);
    if (name.starts_with(within)) {
      text += fmt::format("| **`{}`** | | | | **{}** |\n", section.header, section.about);
    } else {
      within = name.substr(0, name.find(']')) + ".";
      text +=
          fmt::format("\n## {}\n{}\n\n| key | type | default | values | meaning |\n|---|---|---|---|---|\n",
                      section.header, section.about);
    }
    for (const KeySpec& key : section.keys) {
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.name, short_name(key.type), default_text(key),
                          allowed_values(key), key.help);
    }
  }
  return text;
}

}  // namespace mulligan
