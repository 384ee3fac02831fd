#include "framework/artifact/artifact_run.h"

#include <algorithm>
#include <optional>

#include "framework/artifact/artifact_layout.h"
#include "framework/artifact/artifact_model.h"
#include "framework/artifact/code_size.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/artifact/known_sizes.h"
#include "framework/artifact/quantize_model.h"
#include "framework/artifact/size_prediction.h"
#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/plugin/quantizer.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/run/loaded_model.h"
#include "framework/run/replaced_run.h"
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

// Of an evaluation's code. A plugin that is none of the tree's cannot be counted, which strict rules refuse.
void count_evaluation(const LoadedConfig& loaded, const fs::path& tree, CodeSizes& code) {
  try {
    EvaluationSource source = evaluation_source(tree, scoring_plugins(loaded.config));
    code.evaluation_bytes = compressed_evaluation_bytes(tree, source, known_sizes_folder());
    code.evaluation_folders = std::move(source.folders);
  } catch (const Error&) {
    if (loaded.config.ledger.rules == LedgerRules::strict) throw;
  }
}

// The source where there is any, and the binaries: this program, the plugins loaded so far, and those that
// the configuration names and that are there; none is loaded to be counted.
CodeSizes count_code(const LoadedConfig& loaded, PluginHost& host, const QuantizeRunOptions& options) {
  CodeSizes code;
  if (!options.count_code) return code;
  const fs::path& source = options.source;
  const bool here = source.empty() && fs::is_directory("framework") && fs::is_directory("plugins");
  if (here || !source.empty()) {
    const fs::path tree = here ? fs::path(".") : source;
    code.source_bytes = compressed_source_bytes(tree, known_sizes_folder());
    const bool other = !options.built_from.empty() && source_digest(tree) != options.built_from;
    if (other && loaded.config.ledger.rules == LedgerRules::strict) {
      throw run_error(
          "'{}' is not the source that this program was built from, so counting it says nothing about the "
          "result, which is refused as a record under ledger.rules = \"strict\"; name that tree with "
          "--source, or build this one.",
          tree.string());
    }
    count_evaluation(loaded, tree, code);
  }
  std::vector<fs::path> binaries{fs::read_symlink("/proc/self/exe")};
  for (const PluginHandle& plugin : host.loaded()) binaries.push_back(plugin->path());
  for (const PluginTableRef& ref : plugin_tables(loaded.config)) {
    const auto kind = static_cast<PluginKind>(ref.kind);
    const fs::path named = ref.table->path;
    const fs::path file = named.empty() ? host.locate(kind, ref.table->plugin) : named;
    if (!file.empty() && std::ranges::find(binaries, file) == binaries.end()) binaries.push_back(file);
  }
  code.binary_bytes = compressed_binary_bytes(binaries, known_sizes_folder());
  return code;
}

LedgerEntry ledger_entry(const MadeArtifact& made, const CodeSizes& code) {
  LedgerEntry entry;
  entry.stage = LedgerStage::quantize;
  entry.seconds = {{"calibrate", made.calibrate_seconds},
                   {"quantise", made.quantize_seconds},
                   {"compress", made.compress_seconds}};
  entry.bytes = {{"artifact", made.sizes.total_bytes}};
  if (code.evaluation_bytes) entry.bytes.emplace_back("code_source", *code.evaluation_bytes);
  if (code.binary_bytes) entry.bytes.emplace_back("code_binary", *code.binary_bytes);
  return entry;
}

// What the artifact says of its data: what its weights say. Throws data_error where they belong to another
// tokenizer than the configuration names, and where calibration would read text that is scored.
DataIdentity data_of_artifact(const LoadedConfig& loaded, const fs::path& weights, bool calibrates,
                              RunLog& log) {
  const RunConfig& config = loaded.config;
  const WeightOrigin origin = origin_of_weights(weights);
  DataIdentity now;
  if (!config.data.tokenizer.empty()) now.tokenizer_sha256 = sha256_hex_of_file(config.data.tokenizer);
  for (const std::string& note : require_tokenizer_of(origin, now, config.data)) log.line(note);
  if (!calibrates) return origin.data;
  const TrainingData training = open_training_data(config, nullptr);
  require_apart(training.data.train, origin.data.validation);
  if (origin.data.validation.sha256.empty() && !config.data.validation.empty()) {
    // Weights that do not say what they are scored on: what the configuration names is all there is.
    require_apart(training.data.train, load_validation(config.data, config.model.vocabulary).data.validation);
  }
  return origin.data;
}

}  // namespace

bool is_artifact(const fs::path& path) {
  if (!fs::exists(path)) return false;  // a model inside of a file, FILE@TASK
  return read_file_start(path, artifact_magic.size()) == artifact_magic;
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
  resolve_run_plugins(loaded, host, PluginUse::quantize);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  const Quantizer quantizer(quantizer_plugin(loaded, host), loaded.plugin("quantize"));
  Backend& backend = *plugins.backend;
  RunLog log(options, {});

  ArtifactSources sources;
  sources.data = data_of_artifact(loaded, weights, quantizer.needs_hessian(), log);
  sources.quantizer = &quantizer;
  LoadedModel model(backend, config);
  sources.store = &model.store();
  sources.layouts = model.layouts();
  model.load([&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_weights(weights, store, layouts);
  });
  sources.weights = [&](const std::string& parameter) {
    return model.store().download_as<float>(master_name(parameter));
  };

  // Before anything is written: a tree that cannot be counted refuses the whole command.
  std::optional<Progress> counting;
  counting.emplace(&log, ProgressPhase{.what = "counting the code", .ticks = true});
  const CodeSizes code = count_code(loaded, host, options);
  counting.reset();
  log.print("quantising '{}' with {} on {}", weights.string(), quantizer.plugin().name(),
            backend.info().description);
  sources.progress = &log;
  MadeArtifact made = make_artifact(loaded, sources);
  write_file_atomically(options.output, made.bytes);
  const std::vector<double> predicted =
      predict_sizes(artifact_parts(config.model), quantize.tensors, quantize.options.compression);
  log.result(format_sizes(made.artifact, made.sizes, predicted, code, config.ledger.artifact_bytes));
  log.print("calibration {:.1f} s (training time), quantisation {:.1f} s, compression {:.1f} s",
            made.calibrate_seconds, made.quantize_seconds, made.compress_seconds);
  log.result(fmt::format("artifact '{}', sha256 {}", options.output.string(), sha256_hex(made.bytes)));
  if (!options.result.empty()) {
    write_file_atomically(options.result,
                          sizes_json(made.artifact, made.sizes, code, config.ledger.artifact_bytes));
  }
  // An artifact that is put elsewhere is not the run's.
  std::error_code unknown;
  const fs::path beside = options.output.has_parent_path() ? options.output.parent_path() : fs::path(".");
  const bool in_run = fs::equivalent(beside, run.empty() ? fs::path(".") : run, unknown) && !unknown;
  const bool booked = in_run && fs::exists(RunLedger::file(run));
  close_entry(ledger_entry(made, code), booked ? run : fs::path(), config.ledger, log);
  return made;
}

namespace {

// What the quantiser may add by its choices over the whole model.
double choice_bytes(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                    const LoadedConfig& loaded, PluginHost& host) {
  const Quantizer quantizer(quantizer_plugin(loaded, host), loaded.plugin("quantize"));
  return quantizer.extra_bytes(integer_shapes(parts, resolve_quantize_table(parts, quantize.tensors)));
}

}  // namespace

std::string predict_artifact(LoadedConfig& loaded, PluginHost& host, const QuantizeRunOptions& options) {
  const QuantizeConfig& quantize = require_quantize(loaded);
  resolve_run_plugins(loaded, host, PluginUse::quantize);
  const std::vector<ArtifactPart> parts = artifact_parts(loaded.config.model);
  return format_prediction(parts, quantize, choice_bytes(parts, quantize, loaded, host),
                           count_code(loaded, host, options), loaded.config.ledger.artifact_bytes);
}

OpenedArtifact open_artifact(const fs::path& path, const std::vector<std::string>& overrides) {
  OpenedArtifact opened;
  // Before the weights are unpacked: what is declared must be the model of the configuration.
  opened.artifact = read_artifact(path, [&](const Artifact& declared) {
    try {
      parse_stored_config(declared.configuration, path.string());
    } catch (const Error& error) {
      throw data_error("the artifact '{}' carries a configuration that this program cannot use: {}",
                       path.string(), error.what());
    }
    opened.loaded = parse_stored_config(declared.configuration, path.string(), overrides);
    require_model(declared, opened.loaded.config.model, path.string());
  });
  opened.origin = path.string();
  opened.origin.kind = WeightOrigin::Kind::artifact;
  opened.origin.data = opened.artifact.data;
  return opened;
}

EvalResult evaluate_artifact(const fs::path& path, const std::vector<std::string>& overrides,
                             PluginHost& host, const ConsoleOptions& options) {
  OpenedArtifact opened = open_artifact(path, overrides);
  const ModelConfig& model = opened.loaded.config.model;
  return evaluate_loaded(
      opened.loaded, host, opened.origin,
      [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
        load_artifact(opened.artifact, model, store, layouts);
      },
      options);
}

}  // namespace mulligan
