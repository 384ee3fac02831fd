// mulligan_first_contact CONFIG --events FILE [--set KEY=VALUE]... [--seconds N] [--taken-over 3,17]
//
// Runs every distinct call of the configuration's training step once on [backend], each against a reference, and then packed
// attention with empty rows in the batch. FILE gets one line of JSON per event, before and after each call, so the last line of
// a process that died names the call. Exit code 0: all agree; 1: some do not; 2: nothing could be set up; 3: the device stopped
// at a call. tests/gpu/run starts it (docs/gpu_runs.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/run/run_plugins.h"
#include "tests/first_contact/attention_probe.h"
#include "tests/first_contact/step_walk.h"

namespace mulligan::first_contact {
namespace {

using Json = nlohmann::ordered_json;

class Events {
 public:
  explicit Events(const std::string& file) : file_(file) {}
  // Flushed: the process may die in the next call. Plugins log from threads of their own.
  void write(const Json& event) {
    const std::lock_guard lock(mutex_);
    file_ << event.dump() << std::endl;
  }

 private:
  std::mutex mutex_;
  std::ofstream file_;
};
Events* log_events = nullptr;

Json json_of(const CallName& name) {
  return {{"number", name.number}, {"program", name.program}, {"kernel", name.kernel},
          {"shapes", name.shapes}, {"dtypes", name.dtypes},   {"library", name.library}};
}

Json json_of(const CallName& name, const CallReport& report) {
  Json json = json_of(name);
  json["event"] = "call";
  json.update(Json{{"verdict", verdict_name(report.verdict)},
                   {"reference", report.reference},
                   {"argument", report.argument},
                   {"largest", report.largest},
                   {"rms", report.rms},
                   {"limit_largest", report.limits.largest},
                   {"limit_rms", report.limits.rms},
                   {"seconds", report.seconds},
                   {"stopped", report.stopped},
                   {"sentence", report.sentence}});
  return json;
}

struct Options {
  std::string config, events;
  std::vector<std::string> overrides, plugin_paths;
  std::vector<int> taken_over;
  double seconds = 130;
};

int run(const Options& options) {
  Events events(options.events);
  log_events = &events;
  set_plugin_log_sink([](int level, std::string_view line) {
    if (level > 0) log_events->write({{"event", "log"}, {"warning", level > 1}, {"line", line}});
  });
  const auto start = std::chrono::steady_clock::now();
  bool stopped = false, wrong = false;
  try {
    PluginHost host(plugin_places(options.plugin_paths));
    LoadedConfig loaded = load_run_config(options.config, options.overrides);
    resolve_run_plugins(loaded, host);
    StepWalk walk(loaded, host);
    walk.device().synchronize();
    events.write({{"event", "ready"},
                  {"device", walk.device().info().description},
                  {"seconds", seconds_since(start)}});
    const auto ends = [&](const CallName& name, const CallReport& report) {
      wrong |= report.verdict == CallVerdict::differs || report.verdict == CallVerdict::failed;
      events.write(json_of(name, report));
    };
    const auto begins = [&](const CallName& name) {
      Json json = json_of(name);
      json["event"] = "begin";
      events.write(json);
    };
    stopped =
        !walk.run({options.seconds, {options.taken_over.begin(), options.taken_over.end()}}, {begins, ends});
    const std::int64_t tokens = tokens_per_micro_batch(loaded.config.train);
    int number = 1000;  // beyond the step's calls
    for (const AttentionRows& rows : rows_to_probe(tokens, loaded.config.train.sequence_length)) {
      if (stopped || seconds_since(start) > options.seconds) break;
      if (std::ranges::count(options.taken_over, number)) {  // the process died there before
        number += 2;
        continue;
      }
      CallName name{number, "odd rows", "attention_fwd", rows.what, "bf16", true};
      begins(name);
      for (const CallReport& report : probe_attention(walk.device(), loaded.config.model, tokens, rows)) {
        ends(name, report);
        name.number = ++number;
        name.kernel = "attention_bwd";
      }
    }
    events.write({{"event", "end"},
                  {"stopped", stopped},
                  {"measurements", walk.measurements()},
                  {"peak_device_memory_bytes", walk.device().peak_allocated_bytes()},
                  {"seconds", seconds_since(start)}});
  } catch (const Error& error) {
    events.write({{"event", "error"}, {"sentence", error.what()}, {"seconds", seconds_since(start)}});
    fmt::print(stderr, "mulligan_first_contact: {}\n", error.what());
    return 2;
  }
  return stopped ? 3 : wrong ? 1 : 0;
}

}  // namespace
}  // namespace mulligan::first_contact

int main(int argc, char** argv) {
  mulligan::first_contact::Options options;
  CLI::App app("Each distinct call of a training step once, against a reference");
  app.add_option("config", options.config)->required();
  app.add_option("--events", options.events)->required();
  app.add_option("--set", options.overrides)->allow_extra_args(false);
  app.add_option("--plugin-path", options.plugin_paths)->allow_extra_args(false);
  app.add_option("--seconds", options.seconds);
  app.add_option("--taken-over", options.taken_over)->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  return mulligan::first_contact::run(options);
}
