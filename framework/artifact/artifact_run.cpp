#include "framework/artifact/artifact_run.h"

#include <algorithm>

#include "framework/artifact/artifact_layout.h"
#include "framework/artifact/artifact_model.h"
#include "framework/artifact/calibration_rows.h"
#include "framework/artifact/code_size.h"
#include "framework/artifact/evaluation_settings.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/artifact/quantize_model.h"
#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/mapped_file.h"
#include "framework/core/sha256.h"
#include "framework/data/text_overlap.h"
#include "framework/model/elements/stages.h"
#include "framework/plugin/quantizer.h"
#include "framework/plugin/ttt.h"
#include "framework/ranks/host_group.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/run/loaded_model.h"
#include "framework/run/parameter_plan.h"
#include "framework/run/run_files.h"
#include "framework/run/run_ledger.h"
#include "framework/run/run_plugins.h"
#include "framework/run/training_data.h"
#include "framework/run/weights.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

const QuantizeConfig& require_quantize(const LoadedConfig& loaded) {
  if (loaded.config.quantize) return *loaded.config.quantize;
  throw config_error(
      "{}: there is no [quantize] section, which says how tensors are stored; add one, as "
      "configs/quickstart.toml has it.",
      loaded.file);
}

PluginHandle quantizer_plugin(const LoadedConfig& loaded, PluginHost& host) {
  return load_plugin(host, MLG_QUANTIZER, loaded.config.quantize->table);
}

// The tables of the plugins that score an artifact; those of test-time training where it is configured.
std::vector<PluginTableRef> scoring_tables(const RunConfig& config) {
  std::vector<PluginTableRef> tables = plugin_tables(config);
  std::erase_if(tables, [](const PluginTableRef& ref) {
    return ref.table->section != "backend" && !ref.table->section.starts_with("ttt.");
  });
  return tables;
}

}  // namespace

ScoringCode scoring_code(const LoadedConfig& loaded, PluginHost& host) {
  ScoringCode code;
  code.plugins.insert(word_of(loaded.config.model.family));
  for (const std::string& element : active_elements(loaded.config.model))
    code.plugins.insert("element:" + element);
  if (loaded.config.ttt && loaded.config.ttt->transform) code.plugins.insert("transform");
  if (loaded.config.ttt && loaded.config.ttt->config.document_fraction < 1)
    code.plugins.insert("sampled_documents");
  if (loaded.config.quantize && loaded.config.quantize->options.compression == Compression::zlib)
    code.plugins.insert("zlib");
  for (const auto& [kind, table] : scoring_tables(loaded.config)) {
    const fs::path library = table->path.empty() ? host.locate(kind, table->plugin) : fs::path(table->path);
    if (!library.empty() && is_own_plugin(library)) {
      code.own_files.insert(library);
    } else {
      code.plugins.insert(table->plugin);
    }
  }
  for (const KernelRow& row : loaded.config.kernels) code.own_files.insert(row.path);
  return code;
}

std::string packed_own_files(const ScoringCode& scoring) {
  if (scoring.own_files.empty()) return {};
  std::vector<std::pair<std::string, std::string>> contents;
  for (const fs::path& file : scoring.own_files)
    contents.emplace_back(file.filename().string(), read_file(file));
  return compress_once(tar_archive(std::move(contents)));
}

namespace {

// Under strict rules no tree is counted but the one that the program was built from.
void require_built_from(const LedgerConfig& ledger, const fs::path& tree, const std::string& built_from) {
  if (ledger.rules != LedgerRules::strict || built_from.empty() || source_digest(tree) == built_from) return;
  throw run_error(
      "'{}' is not the source that this program was built from, so counting it says nothing about the "
      "result, which is refused as a record under ledger.rules = \"strict\"; name that tree with "
      "--source, or build this one.",
      tree.string());
}

// The tree whose code is counted: the one that is named, else the current folder; empty: neither is one.
fs::path source_tree(const fs::path& named) {
  const bool here = named.empty() && fs::is_directory("framework") && fs::is_directory("plugins");
  return here ? fs::path(".") : named;
}

CodeSize count_code(const LoadedConfig& loaded, PluginHost& host, const QuantizeRunOptions& options) {
  const fs::path tree = source_tree(options.source);
  if (!options.count_code || tree.empty()) return {};
  require_source_tree(tree);
  const ScoringCode scoring = scoring_code(loaded, host);
  require_built_from(loaded.config.ledger, tree, options.built_from);
  try {
    const EvaluationSource source = evaluation_source(tree, scoring.plugins);
    CodeSize code{packed_evaluation(tree, source).bytes() + packed_own_files(scoring).size(),
                  fmt::format("{} files", source.size())};
    for (const fs::path& file : scoring.own_files)
      code.parts += fmt::format(", {} (own file)", file.filename().string());
    return code;
  } catch (const Error&) {
    if (loaded.config.ledger.rules == LedgerRules::strict) throw;
    return {};
  }
}

LedgerEntry ledger_entry(const MadeArtifact& made, const CodeSize& code,
                         const std::optional<TextOverlap>& overlap) {
  LedgerEntry entry;
  entry.stage = LedgerStage::quantize;
  entry.seconds = {{"quantize_setup", made.setup_seconds},
                   {"calibrate", made.calibrate_seconds},
                   {"quantise", made.quantize_seconds},
                   {"compress", made.compress_seconds}};
  entry.bytes = {{"artifact", made.sizes.total_bytes}};
  entry.overlap = overlap;
  if (code.bytes) entry.bytes.emplace_back("code_source", *code.bytes);
  return entry;
}

// Calibration reads no text that is scored, whatever the shards are called and however they were cut. Under strict
// rules the validation text of the weights must be at hand to see it.
std::optional<TextOverlap> calibration_overlap(const RunConfig& config, const TrainingData& training,
                                               const DataIdentity& weights, RunLog& log) {
  const bool strict = config.ledger.rules == LedgerRules::strict;
  const auto unknown = [&](const std::string& why) -> std::optional<TextOverlap> {
    data_error_if(
        strict,
        "{}, so whether calibration reads text that is scored is not known, and under ledger.rules "
        "= \"strict\" there would be no result; name the run's validation shards in data.validation",
        why);
    log.print("{}: calibration's text was not compared with it", why);
    return {};
  };
  if (config.data.validation.empty()) {
    if (weights.validation.sha256.empty()) return {};  // nothing is scored
    return unknown("data.validation is not set");
  }
  std::optional<ValidationSet> validation;
  try {
    validation.emplace(load_validation(config.data, config.model.vocabulary, config.eval.tokens));
  } catch (const Error& error) {
    if (strict || weights.validation.sha256.empty()) throw;
    return unknown(error.what());
  }
  // Weights that do not say what they are scored on: what the configuration names is all there is.
  const ShardSetIdentity& scored = weights.validation;
  if (scored.sha256.empty()) require_apart(training.data.train, validation->data.validation);
  if (!scored.sha256.empty() && scored.sha256 != validation->data.validation.sha256)
    return unknown("data.validation names other shards than the weights were validated on");
  const auto shards = calibration_shards(training.shards, config.quantize->options.calibration_shard_stride);
  return overlap_with_validation(config, shards, *validation, *make_single_group(), log);
}

// Throws data_error where the weights belong to another tokenizer than the configuration names.
WeightOrigin origin_of(const LoadedConfig& loaded, const fs::path& weights, RunLog& log) {
  const RunConfig& config = loaded.config;
  const WeightOrigin origin = origin_of_weights(weights);
  DataIdentity now;
  if (!config.data.tokenizer.empty()) now.tokenizer_sha256 = sha256_hex_of_file(config.data.tokenizer);
  for (const std::string& note : require_tokenizer_of(origin, now, config.data)) log.line(note);
  return origin;
}

EvaluationPlugin evaluation_plugin(const LoadedConfig& loaded, const std::string& section) {
  const PluginConfig& config = loaded.plugin(section);
  EvaluationPlugin plugin{section, config.plugin(), {}};
  for (const Setting& setting : config.settings().all()) {
    // Places to write to and libraries are this machine's.
    const bool place = setting.value.type() == ValueType::string &&
                       (setting.name == "cache" || setting.name == "kernel_file" || setting.name == "cubins");
    plugin.keys.emplace_back(setting.name, place ? ConfigValue("") : setting.value);
  }
  return plugin;
}

// [ttt.base] says the momentum, where its optimiser has any.
void add_momentum(const LoadedConfig& loaded, PluginHost& host, EvaluationPlugin& optimizer) {
  const TttSection& ttt = *loaded.config.ttt;
  const PluginHandle plugin = load_plugin(host, MLG_OPTIMIZER, *ttt.base_optimizer);
  const auto named = [](const mlg_key& key) { return std::string_view(key.name) == "momentum"; };
  if (!std::ranges::any_of(plugin->keys(), named)) return;
  const TttPlugin base(load_plugin(host, MLG_TTT, *ttt.base), loaded.plugin("ttt.base"));
  if (base.has_base_update())
    optimizer.keys.emplace_back("momentum", ConfigValue(base.base_update().momentum));
}

void add_adaptation(const LoadedConfig& loaded, PluginHost& host, EvaluationSettings& settings) {
  const TttSection& ttt = *loaded.config.ttt;
  settings.ttt = ttt.config;
  settings.lr = ttt.lr;
  settings.transform_order = ttt.transform_order;
  settings.adapters = evaluation_plugin(loaded, "ttt.adapters");
  settings.optimizer = evaluation_plugin(loaded, "ttt.optimizer");
  if (ttt.transform) settings.transform = evaluation_plugin(loaded, "ttt.transform");
  if (ttt.base) {
    settings.base = evaluation_plugin(loaded, "ttt.base");
    settings.base_optimizer = evaluation_plugin(loaded, "ttt.base.optimizer");
    add_momentum(loaded, host, settings.base_optimizer);
  }
  if (!ttt.base && !ttt.config.base_keeps_dtypes) return;
  for (const PlannedParameter& parameter : plan_parameters(loaded.config)) {
    if (ttt.config.base_keeps_dtypes)
      settings.masters.push_back({parameter.layout.master, parameter.layout.trained});
    else
      settings.masters.push_back({MLG_F32, true});
  }
}

// The first plugin that scores and that resolve_run_plugins did not find. Empty: all were found.
std::string missing_scoring_plugin(const LoadedConfig& loaded) {
  for (const PluginTableRef& ref : scoring_tables(loaded.config)) {
    if (!loaded.plugins.contains(ref.table->section)) return ref.table->plugin;
  }
  return {};
}

// As write_evaluation_settings() has them, from resolved keys of all plugins that score (PluginUse::quantize). Throws config_error
// for ttt.on_collapse = "fallback".
std::string evaluation_settings_text(const LoadedConfig& loaded, PluginHost& host) {
  const RunConfig& config = loaded.config;
  config_error_if(
      config.ttt && config.ttt->config.on_collapse == OnCollapse::fallback,
      "ttt.on_collapse = \"fallback\" needs a pass without adapters, which the evaluator of an artifact does not make; "
      "set it to \"warn\" or \"off\".");
  EvaluationSettings settings;
  settings.model = config.model;
  for (const Setting& setting : loaded.core.all()) {
    if (!setting.name.starts_with("model.")) continue;
    const std::string name = setting.name.substr(std::string_view("model.").size());
    if (const auto value = config.model.elements.find(name); value != config.model.elements.end())
      settings.elements.emplace_back(name, value->second);
  }
  settings.active = active_elements(config.model);
  settings.eval = config.eval;
  settings.seed = config.run.seed;
  settings.fused_kernels = config.run.fused_kernels;
  settings.joined = config.data.documents == DataDocuments::joined;
  const ComputeTypes types = scored_types(config);
  settings.activations = types.activations;
  settings.projections = types.projections;
  settings.backend = evaluation_plugin(loaded, "backend");
  if (config.ttt) add_adaptation(loaded, host, settings);
  return write_evaluation_settings(settings);
}

// Whether a file in `folder` belongs to the run whose weights lie in `run`.
bool in_folder(const fs::path& file, const fs::path& run) {
  std::error_code unknown;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  return fs::equivalent(folder, run.empty() ? fs::path(".") : run, unknown) && !unknown;
}

// An artifact in a run's directory is of the run's weights: not of others that were put in their place.
void require_own_weights(const fs::path& weights, const fs::path& run) {
  const std::string recorded = recorded_weights_sha256(RunFiles{run});
  const std::string found = origin_of_weights(weights).sha256;
  if (recorded.empty() || found == recorded) return;
  throw data_error(
      "'{}' holds other weights ({}) than those that its run has recorded ({}), so their artifact is "
      "not the run's; put the run's own back, or name another place for the artifact with --output.",
      weights.string(), short_digest(found), short_digest(recorded));
}

}  // namespace

bool is_artifact(const fs::path& path) {
  return fs::exists(path) && MappedFile(path).text().starts_with(artifact_magic);
}

MadeArtifact quantize_weights(LoadedConfig& loaded, PluginHost& host, const fs::path& weights,
                              const QuantizeRunOptions& options) {
  const QuantizeConfig& quantize = require_quantize(loaded);
  require_weights(weights, loaded.config.model);
  const fs::path run = weights.parent_path();
  std::optional<DirectoryLock> lock;
  if (fs::exists(RunFiles{run}.metrics())) {
    lock.emplace(run, "quantize");
    remove_temporary_leftovers(run);
  }
  const bool in_run = in_folder(options.output, run);
  if (in_run) require_own_weights(weights, run);
  resolve_run_plugins(loaded, host, PluginUse::quantize);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  const Quantizer quantizer(quantizer_plugin(loaded, host), loaded.plugin("quantize"));
  Backend& backend = *plugins.backend;
  RunLog log(options, {});

  const WeightOrigin origin = origin_of(loaded, weights, log);
  std::optional<TextOverlap> overlap;
  if (quantizer.needs_hessian()) {
    const TrainingData training = open_training_data(config, nullptr);
    require_apart(training.data.train, origin.data.validation);
    overlap = calibration_overlap(config, training, origin.data, log);
  }
  const std::string missing = missing_scoring_plugin(loaded);
  const std::string evaluation = missing.empty() ? evaluation_settings_text(loaded, host) : "";
  if (!missing.empty()) {
    log.print(
        "warning: there is no plugin '{}', so the artifact carries no evaluation settings; add the folder of "
        "that plugin with --plugin-path.",
        missing);
  }
  LoadedModel model(backend, config);
  model.load([&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_weights(weights, store, layouts);
  });

  // Before anything is written: a tree that cannot be counted refuses the whole command.
  std::optional<Progress> counting;
  counting.emplace(&log, ProgressPhase{.what = "counting the code", .ticks = true});
  const CodeSize code = count_code(loaded, host, options);
  counting.reset();
  log.print("quantising '{}' with {} on {}", weights.string(), quantizer.plugin().name(),
            backend.info().description);
  MadeArtifact made = make_artifact(loaded, {model, quantizer, evaluation, origin.data, &log});
  write_file_atomically(options.output, made.bytes);
  log.result(
      format_sizes(artifact_parts(config.model), quantize, made.sizes, code, config.ledger.artifact_bytes));
  log.print("calibration {:.1f} s (training time), quantisation {:.1f} s, compression {:.1f} s",
            made.calibrate_seconds, made.quantize_seconds, made.compress_seconds);
  log.result(fmt::format("artifact '{}', sha256 {}", options.output.string(), sha256_hex(made.bytes)));
  if (!options.result.empty()) {
    write_file_atomically(options.result,
                          sizes_json(made.artifact, made.sizes, code, config.ledger.artifact_bytes,
                                     sha256_hex(made.bytes), origin.sha256));
  }
  // An artifact that is put elsewhere is not the run's. A finished run without a ledger is not booked.
  const bool booked = in_run && (fs::exists(RunFiles{run}.ledger()) || fs::exists(RunFiles{run}.result()));
  close_entry(ledger_entry(made, code, overlap), booked ? run : fs::path(), config.ledger, log);
  return made;
}

std::string predict_artifact(LoadedConfig& loaded, PluginHost& host, const QuantizeRunOptions& options) {
  const QuantizeConfig& quantize = require_quantize(loaded);
  resolve_run_plugins(loaded, host, PluginUse::quantize);
  const std::vector<ArtifactPart> parts = artifact_parts(loaded.config.model);
  const Quantizer quantizer(quantizer_plugin(loaded, host), loaded.plugin("quantize"));
  const double choice_bytes =
      quantizer.extra_bytes(integer_shapes(parts, resolve_quantize_table(parts, quantize.tensors)));
  return format_prediction(parts, quantize, choice_bytes, count_code(loaded, host, options),
                           loaded.config.ledger.artifact_bytes);
}

PredictedBytes predict_bytes(LoadedConfig& loaded, PluginHost& host, const fs::path& source) {
  const QuantizeConfig& quantize = require_quantize(loaded);
  resolve_run_plugins(loaded, host, PluginUse::quantize);
  QuantizeRunOptions options;
  options.count_code = true;
  options.source = source;
  return {predicted_model_bytes(artifact_parts(loaded.config.model), quantize),
          count_code(loaded, host, options).bytes};
}

OpenedArtifact open_artifact(const fs::path& path, const std::vector<std::string>& overrides,
                             const std::vector<SettingsFrom>& more) {
  OpenedArtifact opened;
  opened.artifact = read_artifact(path);
  const std::string& configuration = opened.artifact.configuration;
  try {
    parse_saved_config(configuration, path.string());
  } catch (const Error& error) {
    throw data_error("the artifact '{}' carries a configuration that this program cannot use: {}",
                     path.string(), error.what());
  }
  opened.loaded = parse_saved_config(configuration, path.string(), overrides, more);
  require_model(opened.artifact, opened.loaded.config.model, path.string());
  opened.origin = path.string();
  opened.origin.kind = WeightOrigin::Kind::artifact;
  opened.origin.data = opened.artifact.data;
  opened.origin.sha256 = sha256_hex_of_file(path);
  return opened;
}

}  // namespace mulligan
