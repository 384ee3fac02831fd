// RunConfig: one run, read from its TOML file, checked and complete but for the plugins' own keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/config/data_config.h"
#include "framework/config/eval_config.h"
#include "framework/config/model_config.h"
#include "framework/config/phase_config.h"
#include "framework/config/plugin_config.h"
#include "framework/config/quantize_config.h"
#include "framework/config/train_config.h"
#include "framework/config/ttt_config.h"
#include "framework/config/value.h"
#include "framework/config/words.h"

namespace mulligan {

// sharded: reduce-scatter before, all-gather after the update. owner: reduce before, broadcast after it; the owner alone
// keeps the optimiser's states.
enum class Communication { replicated, sharded, owner };
template <>
inline constexpr auto config_words<Communication> = std::array{"replicated", "sharded", "owner"};

// What a row says in the place of an optimiser's name where nothing updates its parameters: they keep their
// initial values, and no gradient of them is computed.
inline constexpr const char* no_optimizer = "none";

// One row of [[parameters]].
struct ParameterRow {
  // glob over the whole parameter name: * any run of characters (dots too), ? one, [abc] a set
  std::string match;
  std::string optimizer;  // NAME of [optimizer.NAME], or no_optimizer
  double lr_multiplier = 1.0;
  double weight_decay_multiplier = 1.0;
  DType master_dtype = MLG_F32;  // dtype in which the weights are kept and updated
  Communication communication = Communication::replicated;
  DType communication_dtype = MLG_F32;  // dtype in which gradients travel between ranks
  Origin origin;                        // of the row
};

// For each name the index of the first row that matches it. Throws config_error when a row takes no parameter
// (it matches none, or earlier rows took all it matches) and when a parameter is taken by no row.
std::vector<size_t> resolve_parameter_table(std::span<const std::string> names,
                                            std::span<const ParameterRow> rows);

// Each level includes those before it. One that cannot be honoured is refused (framework/run/run_plugins.h).
enum class Determinism { off, run, batch, world };
template <>
inline constexpr auto config_words<Determinism> = std::array{"off", "run", "batch", "world"};

// [run]
struct RunSection {
  std::string name;       // "" in the file = the file's name without .toml
  std::string directory;  // "" in the file = runs/<name>
  int64_t seed = 1337;
  int64_t threads = 0;  // host and CPU-backend threads; 0 = all cores
  Determinism determinism = Determinism::off;
  bool fused_kernels = true;
  bool require_libraries = false;
};

// One [optimizer.NAME] table.
struct OptimizerConfig {
  std::string name;                     // NAME, which rows of the parameter table refer to
  double lr = 0.0;                      // base learning rate; its schedule multiplies it
  PluginTable table;                    // section "optimizer.NAME"
  std::optional<PluginTable> schedule;  // [optimizer.NAME.schedule]; absent: the run's [schedule]
};

// What the host itself reads in [schedule].
struct ScheduleOptions {
  int64_t horizon_steps = 0;  // 0 = train.steps
};

// One row of [[backend.kernels]].
struct KernelRow {
  std::string match;  // name of the kernel that is replaced
  std::string path;   // absolute: the compiled kernel
  Origin origin;      // of the row
};

enum class ArenaTrack { none, modded3 };
template <>
inline constexpr auto config_words<ArenaTrack> = std::array{"none", "modded3"};

// [arena] A benchmark whose rules the run is held to.
struct ArenaConfig {
  ArenaTrack track = ArenaTrack::none;
};

// What the host itself reads in [ensemble].
struct EnsembleOptions {
  int64_t members = 10;
  int64_t seed = 0;
  int64_t chunk_mebibytes = 256;
  bool count_members = false;
};

// [ensemble] Several models made of a run's weights, scored together (docs/numerics/ensembles.md).
struct EnsembleSection {
  EnsembleOptions options;
  PluginTable table;  // the ensemble plugin, section "ensemble"
};

struct RunConfig {
  RunSection run;
  DataConfig data;
  ModelConfig model;  // derived values filled in
  InitConfig init;
  TrainConfig train;
  ParallelConfig parallel;
  EmaConfig ema;
  CheckpointConfig checkpoint;
  MetricsConfig metrics;
  DoctorConfig doctor;
  NoiseConfig noise;
  LossScaleConfig loss_scale;
  EvalConfig eval;
  LedgerConfig ledger;
  ArenaConfig arena;
  PluginTable backend;
  std::vector<KernelRow> kernels;  // each kernel at most once
  PluginTable loss;
  PluginTable schedule;
  ScheduleOptions schedule_options;
  std::optional<PluginTable> communicator;  // absent: chosen by number of ranks and backend (run_ranks.h)
  std::vector<Phase> phases;                // never empty: the [[phase]] rows, or those of the model
  std::vector<OptimizerConfig> optimizers;  // in order of appearance
  std::optional<PluginTable> wrapper;       // absent: nothing is done around their updates
  std::vector<ParameterRow> parameters;     // in order: the first row that matches a parameter takes it
  std::optional<QuantizeConfig> quantize;   // absent: the run makes no artifact
  std::optional<TttSection> ttt;            // absent: no test-time training
  std::optional<EnsembleSection> ensemble;  // absent: `mulligan probe ensemble` takes the defaults
};

// The longest segment that a phase may have.
int64_t longest_segment(const RunConfig& config);
// Tokens of a pass, the T of the training graph: a micro-batch, or the most that one of its parts can have.
int64_t tokens_per_pass(const RunConfig& config);

// Rotary positions of a pass: rows of joined documents count from their own beginnings, and a packed row
// from the first of its segments.
inline int64_t rotary_positions(const RunConfig& config) {
  return config.data.documents == DataDocuments::joined ? config.train.sequence_length
                                                        : tokens_per_pass(config);
}

// Whether what is scored and saved of a parameter is a tensor of its own, made from its weights at rest and its
// average: after a [wrapper], and with an [ema] of some steps, of some parameters or in part.
inline bool blends_scores(const RunConfig& config) {
  return config.wrapper || (config.ema.decay > 0 && config.ema.partial());
}
// Whether the averages themselves are scored and saved.
inline bool scores_averages(const RunConfig& config) {
  return config.ema.decay > 0 && config.eval.use_ema && !blends_scores(config);
}

// The steps that schedules go over: schedule.horizon_steps, or train.steps.
int64_t horizon_steps(const RunConfig& config);

// A RunConfig together with every setting's value and origin.
struct LoadedConfig {
  std::string file;
  RunConfig config;
  Settings core;                                      // all bound keys, full names
  std::map<std::string, std::vector<Settings>> rows;  // of each list of tables, by its name: "parameters"
  std::map<std::string, PluginConfig> plugins;        // by section; filled by resolve_plugins
  std::vector<std::string> notes;                     // a sentence for each stored path that was not followed

  // The resolved keys of a plugin table such as "loss" or "optimizer.matrices". Throws std::logic_error
  // before resolve_plugins has run or for an unknown section.
  const PluginConfig& plugin(const std::string& section) const;
};

// Reads `path` with its `extends` chain, applies `--set` overrides, checks every core key and the rules
// between keys, and fills in derived values. Throws config_error (exit code 2), one sentence with file:line.
// `more` are settings after the overrides.
LoadedConfig load_run_config(const std::string& path, std::span<const std::string> overrides = {},
                             std::span<const SettingsFrom> more = {});
// The same for TOML text; `name` stands for the file.
LoadedConfig parse_run_config(std::string_view text, const std::string& name,
                              std::span<const std::string> overrides = {});

// The same for text that came with data, such as a checkpoint or an artifact: its plugins are names, and paths of libraries
// and of places to write to are not followed (stored_paths.h); `overrides` can give them. load_run_config
// treats the config.toml of a run directory in the same way.
LoadedConfig parse_saved_config(std::string_view text, const std::string& name,
                                std::span<const std::string> overrides = {},
                                std::span<const SettingsFrom> more = {});

// A step of this many micro-batches, for as many ranks.
SettingsFrom for_ranks(int64_t micro_batches);

// What a table's plugin is called and which keys it declares; asked for each table by resolve_plugins.
// Nothing: the plugin is not needed, and the table stays as it is written.
struct PluginKeys {
  std::string plugin;
  std::vector<KeySpec> keys;
};
using PluginKeySource = std::function<std::optional<PluginKeys>(mlg_kind kind, const PluginTable& table)>;

// Resolves the plugins' own keys of all tables (the backend first), in the order of plugin_tables().
void resolve_plugins(LoadedConfig& loaded, const PluginKeySource& source);

// All plugin tables of a configuration with their kinds: backend, loss, schedule, communicator, then each
// optimiser followed by its own schedule, the wrapper, the quantiser, those of test-time training, and the ensemble.
struct PluginTableRef {
  mlg_kind kind;
  const PluginTable* table;
};
std::vector<PluginTableRef> plugin_tables(const RunConfig& config);

}  // namespace mulligan
