// The plugin instances of one run.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "framework/plugin/optimizer.h"
#include "framework/plugin/plugin_host.h"
#include "framework/plugin/plugin_instance.h"
#include "framework/plugin/schedule.h"
#include "framework/plugin/wrapper.h"
#include "framework/report/run_log.h"

namespace mulligan {

struct RunPlugins {
  std::unique_ptr<Backend> backend;  // knows the kernels of the loss and of all optimisers
  std::unique_ptr<Loss> loss;        // null where nothing is trained, and then there is no optimiser either
  std::vector<std::unique_ptr<Optimizer>> optimizers;  // in the order of RunConfig::optimizers
  std::unique_ptr<Wrapper> wrapper;                    // null without [wrapper]
  std::vector<std::unique_ptr<Schedule>> schedules;    // the run's, then those of optimisers with their own
  std::vector<const Schedule*> optimizer_schedules;    // the one that each optimiser follows
};

// What a command does, and so which plugins of a configuration it needs: training all of them, scoring the
// backend, quantising the backend and the quantiser, adapting (test-time training) the backend and those of
// [ttt], an ensemble the backend and the plugin of
// [ensemble]. No other is looked for.
enum class PluginUse { train, score, quantize, adapt, ensemble };

// Resolves the keys of the plugins of `loaded` that `use` needs (LoadedConfig::plugins), loading them through
// `host`. A [run] threads > 0 becomes the backend's `threads` where the backend has that key and [backend]
// does not set it.
void resolve_run_plugins(LoadedConfig& loaded, PluginHost& host, PluginUse use = PluginUse::train);

// Makes all instances from resolved keys (resolve_run_plugins). With `backend` that backend plugin, with its
// default keys, stands in for the configured one. Throws config_error, also where the configured backend does
// not keep [run] determinism.
RunPlugins make_run_plugins(const LoadedConfig& loaded, PluginHost& host, const std::string& backend = {});

// The same with the backend of one section: "backend" or that of a phase ("phase.2.backend"), to which
// [[backend.kernels]] do not apply.
RunPlugins make_phase_plugins(const LoadedConfig& loaded, PluginHost& host, const std::string& section);

// The configured backend alone, for what needs no plugin of training, or `backend` as
// above. Throws as make_run_plugins.
RunPlugins make_backend_plugin(const LoadedConfig& loaded, PluginHost& host, const std::string& backend = {});

// Throws config_error where the backend computes nothing, with what follows from that ("nothing can be scored").
void require_computing(const Backend& backend, const char* consequence);

// The plugin of a table. Throws config_error; where stored data named its library, the sentence says how a
// user allows that one.
PluginHandle load_plugin(PluginHost& host, mlg_kind kind, const PluginTable& table);

// The plugins in use, each once: what result.json and weights name.
std::vector<PluginHandle> plugins_in_use(const LoadedConfig& loaded, PluginHost& host);

// [run] determinism: what the host does about it, and which backends keep it.
//
// Host: gradients and losses of a step are added in a tree under "world" (step/gradient_exchange.h); everything else
// on the host has one order always. Backends are told by their keys `deterministic` ("run" and above) and
// `batch_invariant` ("batch" and above), and promise what they then hold (mlg_determinism).
//
// What a backend promises, in the words of `run.determinism`: "off" where it promises nothing.
std::string_view promise_name(mlg_determinism promise);

// Throws config_error where [run] determinism asks for more than the backend, with the kernels it has now,
// promises. A backend that computes nothing has no rows, so that a promise of repetitions is enough there.
// "world" is about the order of the ranks' gradients: it needs a backend that repeats, no more.
void require_determinism(const RunConfig& config, const Backend& backend);

// PluginLines: what plugins say, in the log of the run that has loaded them.
class PluginLines {
 public:
  // Until this object goes, a plugin's warning is a warning of `log`, and its information a line of the log's
  // file; each with "plugin: " before it, so that none can be taken for a line of the program's own. A sink
  // that was there before is told as well.
  explicit PluginLines(RunLog& log);
  ~PluginLines() { set_plugin_log_sink(std::move(before_)); }
  PluginLines(const PluginLines&) = delete;
  PluginLines& operator=(const PluginLines&) = delete;

 private:
  PluginLogSink before_;
};

}  // namespace mulligan
