#include "framework/train/resume.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/parse_json.h"
#include "framework/core/printable.h"
#include "framework/core/sha256.h"
#include "framework/plugin/schedule.h"
#include "framework/ranks/launch_agent.h"
#include "framework/report/machine.h"
#include "framework/report/run_directory.h"
#include "framework/run/run_plugins.h"
#include "framework/run/strict_rules.h"
#include "framework/step/phase_progress.h"

namespace mulligan {

namespace fs = std::filesystem;

namespace {

enum class Change { harmless, noted, refused };

// What a setting that differs from the saved run's means for a run that continues from it.
Change meaning_of(const std::string& key) {
  const auto starts = [&](const char* prefix) { return key.starts_with(prefix); };
  const auto ends = [&](const char* suffix) { return key.ends_with(suffix); };
  // The tensors would not fit, or the steps done would not be what the step number says.
  if (starts("model.") || key == "train.tokens_per_step") return Change::refused;
  // The steps done were held to other rules.
  if (key == "arena.track") return Change::refused;
  // Which phase a step belongs to is part of what has been trained.
  if (starts("phase.") && !ends(".threads")) return Change::refused;
  // A saved position in a mix is one of these weights.
  if (starts("data.mix.")) return ends(".train") ? Change::harmless : Change::refused;
  if (starts("optimizer.") && ends(".plugin") && !ends(".schedule.plugin")) return Change::refused;
  if (starts("parameters.") && (ends(".match") || ends(".optimizer") || ends(".master_dtype"))) {
    return Change::refused;
  }
  // Places, threads, reports, and what happens after training.
  for (const char* prefix : {"run.name",
                             "run.directory",
                             "run.threads",
                             "run.determinism",
                             "backend.threads",
                             "backend.cache",
                             "checkpoint.",
                             "metrics.",
                             "data.prefetch",
                             "data.exact_vocabulary",
                             "data.train",
                             "data.validation",
                             "data.tokenizer",
                             "eval.",
                             "ledger.",
                             "quantize.",
                             "ttt.",
                             "train.log_every",
                             "communicator.",
                             "train.validate_every",
                             "train.validate_at",
                             "train.validations",
                             "train.warmup."}) {
    if (starts(prefix)) return Change::harmless;
  }
  return ends(".path") ? Change::harmless : Change::noted;
}

// The first learning rate that differs from the saved run's at the same step and second, from the coming step to the end of the
// longer run, as a sentence without full stop; "" where none does.
std::string changed_rates(const LoadedConfig& saved, const LoadedConfig& now, PluginHost& host,
                          const CheckpointManifest& manifest) {
  constexpr int places = 64;
  const double begin = manifest.progress.elapsed_seconds;
  const double end = std::max({begin, saved.config.train.budget_seconds, now.config.train.budget_seconds});
  const std::int64_t last = std::max({manifest.step, saved.config.train.steps, now.config.train.steps});
  const std::int64_t horizon = horizon_steps(saved.config);
  for (const OptimizerConfig& optimizer : now.config.optimizers) {
    const auto before = std::ranges::find(saved.config.optimizers, optimizer.name, &OptimizerConfig::name);
    if (before == saved.config.optimizers.end()) continue;
    const PluginTable& was = before->schedule ? *before->schedule : saved.config.schedule;
    const PluginTable& is = optimizer.schedule ? *optimizer.schedule : now.config.schedule;
    const auto keys = saved.plugins.find(was.section);  // none: of another plugin than this run's
    if (was.plugin != is.plugin || keys == saved.plugins.end())
      return fmt::format("[optimizer.{}] followed [{}] '{}' and now follows [{}] '{}'", optimizer.name,
                         was.section, was.plugin, is.section, is.plugin);
    // The checkpoint names no code.
    const PluginHandle plugin = load_plugin(host, MLG_SCHEDULE, is);
    const Schedule old_schedule(plugin, keys->second), schedule(plugin, now.plugin(is.section));
    for (int place = 0; place <= places; ++place) {
      const double share = static_cast<double>(place) / places;
      const std::int64_t step =
          manifest.step + std::llround(share * static_cast<double>(last - manifest.step));
      const auto rate = [&](const Schedule& of, const RunConfig& config, double base_lr) {
        const TrainConfig& train = config.train;
        const double spent =
            train.budget_seconds > 0
                ? (begin + share * (end - begin)) / (train.budget_seconds - train.reserve_seconds)
                : static_cast<double>(step) / static_cast<double>(train.steps);
        return of.rate(run_progress(config, step, std::clamp(spent, 0.0, 1.0), 8 * share), base_lr).lr;
      };
      const double rate_was = rate(old_schedule, saved.config, before->lr);
      const double rate_is = rate(schedule, now.config, optimizer.lr);
      if (rate_was == rate_is) continue;
      return fmt::format("the learning rate of [optimizer.{}] at step {} was to be {:.6g} and is {:.6g}{}",
                         optimizer.name, step + 1, rate_was, rate_is,
                         horizon == horizon_steps(now.config) || horizon == 0
                             ? ""
                             : fmt::format(" (schedule.horizon_steps = {} keeps it)", horizon));
    }
  }
  return {};
}

// Settings (as of --set) that say again which paths the plugins' keys of a stored configuration name. These are
// compared and never opened, so the mark that keeps stored data from naming files need not stand on them.
std::vector<std::string> paths_of_keys(const RunConfig& stored) {
  std::vector<std::string> paths;
  for (const PluginTableRef& ref : plugin_tables(stored)) {
    for (const ConfigMember& member : ref.table->keys.members) {
      if (member.node.origin.kind != Origin::Kind::stored) continue;
      paths.push_back(fmt::format("{}.{}={}", ref.table->section, member.name, to_toml(member.node.value)));
    }
  }
  return paths;
}

// The configuration that the checkpoint keeps. It is data: it names plugins, but has none loaded. Its keys
// are resolved with the plugins of this run where these are the same, and else are those that were written.
LoadedConfig saved_config(const Checkpoint& checkpoint, const LoadedConfig& loaded, PluginHost& host) {
  const std::string origin = checkpoint.path.string() + " (config)";
  LoadedConfig saved = parse_saved_config(checkpoint.manifest.config, origin);
  if (const auto paths = paths_of_keys(saved.config); !paths.empty())
    saved = parse_saved_config(checkpoint.manifest.config, origin, paths);
  const std::vector<PluginTableRef> now = plugin_tables(loaded.config);
  resolve_plugins(saved, [&](mlg_kind kind, const PluginTable& table) -> std::optional<PluginKeys> {
    const auto row =
        std::ranges::find(checkpoint.manifest.plugins, table.section, &CheckpointPlugin::section);
    const std::string name =
        table.plugin.empty() && row != checkpoint.manifest.plugins.end() ? row->name : table.plugin;
    const auto same = std::ranges::find_if(now, [&](const PluginTableRef& ref) {
      return ref.kind == kind && ref.table->section == table.section;
    });
    if (same == now.end()) return std::nullopt;
    const PluginHandle plugin = load_plugin(host, kind, *same->table);
    if (plugin->name() != name) return std::nullopt;
    return PluginKeys{name, key_specs(name, plugin->keys())};
  });
  return saved;
}

void require_steps_left(const Checkpoint& checkpoint, const TrainConfig& train) {
  if (train.steps == 0 || checkpoint.manifest.step <= train.steps) return;
  throw config_error(
      "train.steps = {}, but the run has made {} steps by its checkpoint '{}'; set train.steps to at least that, "
      "or start anew in another run.directory.",
      train.steps, checkpoint.manifest.step, checkpoint.path.string());
}

// A run that keeps its budget goes on, also where its last step has passed it.
void require_seconds_left(const Checkpoint& checkpoint, const TrainConfig& saved, const TrainConfig& now) {
  const double spent = checkpoint.manifest.progress.elapsed_seconds;
  if (now.budget_seconds == 0 || now.budget_seconds == saved.budget_seconds || spent <= now.budget_seconds)
    return;
  throw config_error(
      "train.budget_seconds = {}, but the run has trained for {:.1f} s by its checkpoint '{}'; set train.budget_seconds "
      "to at least that, or start anew in another run.directory.",
      now.budget_seconds, spent, checkpoint.path.string());
}

void compare_configs(const Checkpoint& checkpoint, const LoadedConfig& loaded, PluginHost& host,
                     std::vector<std::string>& notes) {
  const LoadedConfig saved = saved_config(checkpoint, loaded, host);
  require_seconds_left(checkpoint, saved.config.train, loaded.config.train);
  const bool strict = loaded.config.ledger.rules == LedgerRules::strict;
  require_steps_left(checkpoint, loaded.config.train);
  if (const std::string borrowed = borrowed_start(saved.config); strict && !borrowed.empty()) {
    throw config_error(
        "the checkpoint '{}' is of a run whose {}; under ledger.rules = \"strict\" start anew.",
        checkpoint.path.string(), borrowed);
  }
  for (const ConfigDifference& difference : diff_configs(saved, loaded)) {
    // Kernels by path are not part of what stored data may say.
    if (difference.key.starts_with("backend.kernels.") && difference.left.empty()) continue;
    const Change change = meaning_of(difference.key);
    if (change == Change::refused) {
      throw config_error(
          "the checkpoint '{}' was written with {} = {}, but now it is {}; resume with the saved run's "
          "setting, or start anew in another run.directory.",
          checkpoint.path.string(), difference.key, difference.left.empty() ? "(none)" : difference.left,
          difference.right.empty() ? "(none)" : difference.right);
    }
    if (change == Change::noted) {
      notes.push_back(fmt::format("warning: {} was {} and is now {}: the run no longer repeats the saved one",
                                  difference.key, difference.left, difference.right));
    }
  }
  const std::string changed = changed_rates(saved, loaded, host, checkpoint.manifest);
  if (changed.empty()) return;
  if (strict)
    throw config_error("{}; under ledger.rules = \"strict\" a run keeps the schedule of its checkpoint.",
                       changed);
  notes.push_back(fmt::format("warning: {}", changed));
}

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  return fs::equivalent(a, b, failed) && !failed;
}

}  // namespace

std::vector<CheckpointPlugin> checkpoint_plugins(const LoadedConfig& loaded, PluginHost& host) {
  std::vector<CheckpointPlugin> plugins;
  for (const PluginTableRef& ref : plugin_tables(loaded.config)) {
    const PluginHandle plugin = load_plugin(host, ref.kind, *ref.table);
    plugins.push_back({ref.table->section, std::string(kind_word(plugin->kind())), plugin->name(),
                       plugin->state_version(), plugin->sha256()});
  }
  return plugins;
}

namespace {

// Adds what to report about plugins that wrote the checkpoint and those in use. Throws config_error naming the section when a
// plugin's state version differs.
void compare_plugins(const CheckpointManifest& manifest, const LoadedConfig& loaded, PluginHost& host,
                     std::vector<std::string>& notes) {
  for (const CheckpointPlugin& now : checkpoint_plugins(loaded, host)) {
    const auto saved = std::ranges::find(manifest.plugins, now.section, &CheckpointPlugin::section);
    if (saved == manifest.plugins.end() || saved->name != now.name)
      continue;  // reported as a changed setting
    if (saved->state_version != now.state_version) {
      throw config_error(
          "[{}]: the checkpoint keeps the state of {} '{}' in version {}, but this library has state version "
          "{}; resume with the library of the saved run.",
          now.section, now.kind, now.name, saved->state_version, now.state_version);
    }
    if (saved->sha256 != now.sha256) {
      notes.push_back(fmt::format(
          "warning: [{}]: the library of {} '{}' is not the one of the saved run: losses may differ in their "
          "last bits",
          now.section, now.kind, now.name));
    }
  }
}

}  // namespace

ResumePoint find_resume_point(const LoadedConfig& loaded, PluginHost& host, const std::string& resume) {
  ResumePoint point;
  if (resume.empty()) return point;
  const fs::path own = loaded.config.checkpoint.directory;
  if (resume == "auto") {
    point.checkpoint = newest_sound_checkpoint(own, point.notes);
    for (std::string& note : point.notes) note = "warning: " + note;
    if (!point.checkpoint) {
      point.notes.push_back(
          fmt::format("'{}' holds no checkpoint yet: training starts from the beginning", own.string()));
      return point;
    }
  } else {
    point.checkpoint = find_checkpoint(resume);
  }
  point.in_place = same_folder(point.checkpoint->path.parent_path(), own);
  compare_configs(*point.checkpoint, loaded, host, point.notes);
  compare_plugins(point.checkpoint->manifest, loaded, host, point.notes);
  const std::string& saved = point.checkpoint->manifest.instruction_set;
  if (saved != instruction_set()) {
    point.notes.push_back(fmt::format(
        "warning: the checkpoint was written on a CPU with {}, this one has {}: results may differ "
        "in their last bits from those of a run on one machine",
        printable(saved), instruction_set()));
  }
  return point;
}

void require_same_rows(const CheckpointData& saved, const LoaderOptions& options) {
  if (saved.row_tokens == options.row_tokens) return;
  throw config_error(
      "the saved run read rows of {} tokens, this one reads rows of {}; "
      "resume with its train.tokens_per_step and train.micro_batches.",
      saved.row_tokens, options.row_tokens);
}

std::size_t saved_phase(const CheckpointManifest& manifest, const std::vector<Phase>& phases) {
  const std::string& name = manifest.progress.phase;
  const auto found = std::ranges::find(phases, name, &Phase::name);
  if (found == phases.end()) {
    throw config_error(
        "the saved run was in its phase '{}', which this one has not; resume with its [[phase]] rows and "
        "[model.loop].",
        printable(name));
  }
  return static_cast<std::size_t>(found - phases.begin());
}

void require_same_identity(const Checkpoint& checkpoint, const DataIdentity& now,
                           const std::string& tokenizer_file) {
  const DataIdentity& saved = checkpoint.manifest.identity;
  const DataOrigin origin{fmt::format("the checkpoint '{}'", checkpoint.path.string()), saved};
  if (!saved.tokenizer_sha256.empty()) require_same_tokenizer(origin, now, tokenizer_file);
  require_same_training_shards(origin, now.train);
  const std::string &was = saved.validation.sha256, &is = now.validation.sha256;
  if (!was.empty() && !is.empty() && was != is) {
    throw data_error(
        "data.validation names other tokens ({}) than the run of {} was scored on ({}), so its scores could "
        "not be compared; name those, or score others afterwards with 'mulligan eval'",
        short_digest(is), origin.name, short_digest(was));
  }
}

template <typename Fields>
void describe(Fields& f, Attempt& attempt) {
  f("launcher", attempt.launcher)("run_id", attempt.run_id);
  f("agents", attempt.agents)("restarts", attempt.restarts);
}

namespace {

constexpr const char* torchrun = "torchrun";

bool share_an_agent(const Attempt& a, const Attempt& b) {
  return std::ranges::any_of(a.agents, [&](const std::string& agent) {
    return !agent.empty() && std::ranges::count(b.agents, agent) > 0;
  });
}

}  // namespace

Attempt own_attempt(RunRanks& ranks) {
  const LaunchEnvironment& environment = ranks.environment();
  Attempt attempt{environment.launcher, environment.run_id, {}, environment.restart_count};
  if (attempt.launcher != torchrun) return attempt;
  ranks.group().consult(launch_agent("TORCHELASTIC_RUN_ID"), [&](const std::vector<std::string>& all) {
    const std::set<std::string> agents(all.begin(), all.end());
    attempt.agents.assign(agents.begin(), agents.end());
    return std::string();
  });
  return attempt;
}

std::optional<Attempt> noted_attempt(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = RunFiles{run_directory}.attempt();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    return fields_from_json<Attempt>(parse_json<nlohmann::ordered_json>(read_file(path, 1 << 20)));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void note_attempt(const std::filesystem::path& run_directory, const Attempt& attempt) {
  if (attempt.launcher == "none") return;
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  write_file_atomically(RunFiles{run_directory}.attempt(),
                        fields_to_json(attempt).dump(2, ' ', true, replace) + "\n");
}

bool goes_on(const std::optional<Attempt>& before, Attempt& now) {
  if (now.launcher == "none") return now.restarts > 0;  // set by the user
  if (!before || before->launcher != now.launcher || before->run_id != now.run_id) return false;
  if (now.launcher == torchrun ? !share_an_agent(*before, now) : now.restarts == 0) return false;
  now.restarts = std::max(now.restarts, before->restarts + 1);
  return true;
}

}  // namespace mulligan
