#include "framework/run/run_plugins.h"

#include <algorithm>

#include "framework/config/schema.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/graph/row_rules.h"
#include "framework/model/elements/masking/config.h"

namespace mulligan {
namespace {

bool needs(PluginUse use, const std::string& section) {
  if (use == PluginUse::train || section == "backend") return true;
  if (section.starts_with("ttt.")) return use == PluginUse::quantize || use == PluginUse::adapt;
  return (section == "quantize" && use == PluginUse::quantize) ||
         (section == "ensemble" && use == PluginUse::ensemble);
}

// Under open rules `mulligan quantize` works without the plugins that score its artifact.
bool may_be_missing(const RunConfig& config, const PluginTable& table) {
  const bool by_name = table.path.empty() && table.stored_path.empty();
  return config.ledger.rules != LedgerRules::strict && by_name && table.section.starts_with("ttt.");
}

// Gives the backend's key `name` a value, where it has such a key and the user has not set it.
void pass_on(PluginTable& backend, std::span<const KeySpec> backend_keys, const char* name,
             ConfigValue value) {
  const bool has_key = std::ranges::find(backend_keys, name, &KeySpec::name) != backend_keys.end();
  if (!has_key || backend.keys.find(name)) return;
  backend.keys.put(name, ConfigNode::make_leaf(std::move(value), Origin::derived()));
}

// What a user sets once, in [run], and the backend takes from there: the number of host threads, and what
// must have the same bits (require_determinism).
void pass_run_on(const RunSection& run, PluginTable& backend, PluginHost& host) {
  const PluginHandle plugin = load_plugin(host, MLG_BACKEND, backend);
  const std::vector<KeySpec> backend_keys = key_specs(plugin->name(), plugin->keys());
  if (run.threads != 0) pass_on(backend, backend_keys, "threads", ConfigValue(run.threads));
  if (run.determinism >= Determinism::run) pass_on(backend, backend_keys, "deterministic", ConfigValue(true));
  if (run.determinism >= Determinism::batch)
    pass_on(backend, backend_keys, "batch_invariant", ConfigValue(true));
  // Repeatable runs do without the library on purpose.
  if (run.require_libraries && run.determinism == Determinism::off)
    pass_on(backend, backend_keys, "require_library", ConfigValue(true));
}

std::unique_ptr<Backend> make_backend(const LoadedConfig& loaded, const PluginHandle& plugin,
                                      const PluginConfig& keys) {
  auto backend = std::make_unique<Backend>(plugin, keys);
  backend->set_fused_kernels(loaded.config.run.fused_kernels);
  return backend;
}

std::unique_ptr<Backend> make_backend(const LoadedConfig& loaded, PluginHost& host, const std::string& name) {
  if (name.empty()) {
    return make_backend(loaded, load_plugin(host, MLG_BACKEND, loaded.config.backend),
                        loaded.plugin("backend"));
  }
  const PluginHandle plugin = host.load(MLG_BACKEND, name);
  PluginTable table = read_plugin_table(nullptr, "backend", loaded.file, name);
  return make_backend(loaded, plugin,
                      resolve_plugin_keys(table, plugin->name(), key_specs(plugin->name(), plugin->keys())));
}

// A row that names no kernel of the backend or of any plugin in use is a typing error.
void refuse_unknown_kernels(const LoadedConfig& loaded, PluginHost& host, const Backend& backend) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; const mlg_kernel* kernel = backend.kernel_at(i); ++i) {
    names.push_back(kernel->name);
  }
  for (const PluginHandle& plugin : plugins_in_use(loaded, host)) {
    for (const mlg_kernel& kernel : plugin->kernels()) {
      if (backend.plugin().name() == kernel.backend) names.push_back(kernel.name);
    }
  }
  for (const KernelRow& row : loaded.config.kernels) {
    if (std::ranges::find(names, row.match) != names.end()) continue;
    const std::string nearest = nearest_name(row.match, names);
    throw config_error("{}: the {} backend has no kernel '{}' in this run{}", row.origin.text(),
                       backend.plugin().name(), row.match,
                       nearest.empty() ? "." : "; did you mean '" + nearest + "'?");
  }
}

void replace_kernels(const LoadedConfig& loaded, PluginHost& host, Backend& backend) {
  if (loaded.config.kernels.empty()) return;
  refuse_unknown_kernels(loaded, host, backend);
  // A fused kernel would be called in the place of a plain one that a row replaces.
  const bool all_fused = std::ranges::all_of(
      loaded.config.kernels, [](const KernelRow& row) { return is_fused_core_kernel(row.match); });
  if (!all_fused) backend.set_fused_kernels(false);
  for (const KernelRow& row : loaded.config.kernels) {
    backend.replace_kernel(row.match, row.path, row.origin.text());
  }
}

// The promise of a backend that `config` needs; NONE: any backend will do.
mlg_determinism needed(const RunConfig& config, const Backend& backend) {
  const Determinism level = config.run.determinism;
  if (level == Determinism::off) return MLG_DETERMINISM_NONE;
  return level == Determinism::batch && backend.info().computes ? MLG_DETERMINISM_BATCH : MLG_DETERMINISM_RUN;
}

}  // namespace

std::string_view promise_name(mlg_determinism promise) {
  return promise >= MLG_DETERMINISM_BATCH ? "batch" : promise == MLG_DETERMINISM_RUN ? "run" : "off";
}

void require_determinism(const RunConfig& config, const Backend& backend) {
  const mlg_determinism promised = backend.promises(), wanted = needed(config, backend);
  if (promised >= wanted) return;
  const std::string_view level = word_of(config.run.determinism);
  const std::string who = backend.plugin().description() +
                          (config.kernels.empty() ? "" : " with the kernels of [[backend.kernels]]");
  if (promised < MLG_DETERMINISM_RUN) {
    throw config_error(
        "run.determinism = \"{}\" cannot be kept: {} does not promise that a repeated run gives the same "
        "bits; set \"off\" or take another backend.",
        level, who);
  }
  throw config_error(
      "run.determinism = \"{}\" cannot be kept: {} does not promise that a row's bits are the same whatever "
      "rows are computed with it; set backend.batch_invariant = true where it has that key, set \"run\", or "
      "take another backend.",
      level, who);
}

PluginHandle load_plugin(PluginHost& host, mlg_kind kind, const PluginTable& table) {
  const bool asked = !table.stored_path.empty() && table.path.empty();
  if (!asked) return host.load(kind, table.plugin, table.path);
  const std::string request = fmt::format(
      "[{}] of {} asks for the library {}{}, which is not loaded, since stored data may not name code",
      table.section, table.source, toml_quoted(table.stored_path),
      table.plugin.empty() ? "" : fmt::format(" of the plugin '{}'", table.plugin));
  const std::string by_key = fmt::format("--set {}.path=FILE", table.section);
  if (table.plugin.empty()) throw config_error("{}; if you trust it, allow it with {}.", request, by_key);
  try {
    return host.load(kind, table.plugin);
  } catch (const Error& error) {
    throw config_error("{}; if you trust it, allow it with --plugin-path FILE or {}: {}", request, by_key,
                       error.what());
  }
}

void resolve_run_plugins(LoadedConfig& loaded, PluginHost& host, PluginUse use) {
  const ModelConfig& model = loaded.config.model;
  if (use == PluginUse::quantize) require_next_token(model, "artifacts are scored by the next token");
  if (use == PluginUse::adapt) require_next_token(model, "test-time training learns from the next token");
  if (use == PluginUse::ensemble) require_next_token(model, "ensembles are scored by the next token");
  pass_run_on(loaded.config.run, loaded.config.backend, host);
  if (use == PluginUse::train) {
    for (Phase& phase : loaded.config.phases) {
      if (phase.backend) pass_run_on(loaded.config.run, *phase.backend, host);
    }
  }
  resolve_plugins(loaded, [&](mlg_kind kind, const PluginTable& table) -> std::optional<PluginKeys> {
    if (!needs(use, table.section)) return std::nullopt;
    if (use == PluginUse::quantize && may_be_missing(loaded.config, table) &&
        host.locate(kind, table.plugin).empty())
      return std::nullopt;
    const PluginHandle plugin = load_plugin(host, kind, table);
    return PluginKeys{plugin->name(), key_specs(plugin->name(), plugin->keys())};
  });
}

RunPlugins make_backend_plugin(const LoadedConfig& loaded, PluginHost& host, const std::string& backend) {
  RunPlugins plugins;
  plugins.backend = make_backend(loaded, host, backend);
  if (!backend.empty()) return plugins;
  // A row for a kernel of a plugin that is not in use here, such as the loss, has nothing to replace.
  for (const KernelRow& row : loaded.config.kernels) {
    if (plugins.backend->has_kernel(row.match))
      plugins.backend->replace_kernel(row.match, row.path, row.origin.text());
  }
  require_determinism(loaded.config, *plugins.backend);
  return plugins;
}

void require_computing(const Backend& backend, const char* consequence) {
  if (backend.info().computes) return;
  throw config_error("[backend]: {} computes nothing, so {}.", backend.plugin().description(), consequence);
}

namespace {

// The plugins of training that bring kernels to `plugins.backend`, and the schedules.
void add_training_plugins(RunPlugins& plugins, const LoadedConfig& loaded, PluginHost& host) {
  const RunConfig& config = loaded.config;
  plugins.loss = std::make_unique<Loss>(load_plugin(host, MLG_LOSS, config.loss), loaded.plugin("loss"));
  const auto add_schedule = [&](const PluginTable& table) {
    plugins.schedules.push_back(
        std::make_unique<Schedule>(load_plugin(host, MLG_SCHEDULE, table), loaded.plugin(table.section)));
    return plugins.schedules.back().get();
  };
  const Schedule* shared = add_schedule(config.schedule);
  plugins.backend->add_kernels(plugins.loss->plugin());
  for (const OptimizerConfig& optimizer : config.optimizers) {
    plugins.optimizers.push_back(std::make_unique<Optimizer>(
        load_plugin(host, MLG_OPTIMIZER, optimizer.table), loaded.plugin(optimizer.table.section)));
    plugins.optimizer_schedules.push_back(optimizer.schedule ? add_schedule(*optimizer.schedule) : shared);
    plugins.backend->add_kernels(plugins.optimizers.back()->plugin());
  }
  if (config.wrapper) {
    plugins.wrapper = std::make_unique<Wrapper>(load_plugin(host, MLG_WRAPPER, *config.wrapper),
                                                loaded.plugin(config.wrapper->section));
    plugins.backend->add_kernels(plugins.wrapper->plugin());
  }
}

}  // namespace

RunPlugins make_run_plugins(const LoadedConfig& loaded, PluginHost& host, const std::string& backend) {
  RunPlugins plugins;
  plugins.backend = make_backend(loaded, host, backend);
  if (backend.empty()) replace_kernels(loaded, host, *plugins.backend);
  add_training_plugins(plugins, loaded, host);
  if (backend.empty()) require_determinism(loaded.config, *plugins.backend);
  return plugins;
}

RunPlugins make_phase_plugins(const LoadedConfig& loaded, PluginHost& host, const std::string& section) {
  for (const Phase& phase : loaded.config.phases) {
    if (!phase.backend || phase.backend->section != section) continue;
    RunPlugins plugins;
    plugins.backend =
        make_backend(loaded, load_plugin(host, MLG_BACKEND, *phase.backend), loaded.plugin(section));
    add_training_plugins(plugins, loaded, host);
    require_determinism(loaded.config, *plugins.backend);
    return plugins;
  }
  return make_run_plugins(loaded, host);
}

std::vector<PluginHandle> plugins_in_use(const LoadedConfig& loaded, PluginHost& host) {
  std::vector<PluginHandle> used;
  for (const PluginTableRef& ref : plugin_tables(loaded.config)) {
    PluginHandle plugin = load_plugin(host, ref.kind, *ref.table);
    if (std::ranges::find(used, plugin) == used.end()) used.push_back(std::move(plugin));
  }
  return used;
}

PluginLines::PluginLines(RunLog& log) : before_(set_plugin_log_sink({})) {
  set_plugin_log_sink([&log, before = before_](int level, std::string_view message) {
    if (before) before(level, message);
    if (level >= 2) log.print("warning: plugin: {}", printable(message));
    if (level == 1) log.detail(fmt::format("plugin: {}", printable(message)));
  });
}

}  // namespace mulligan
