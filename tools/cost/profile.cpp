#include "tools/cost/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/steady_time.h"
#include "framework/report/machine.h"
#include "framework/run/run_plugins.h"
#include "framework/run/training_data.h"
#include "framework/step/own_engine.h"
#include "tools/cost/cost.h"
#include "tools/cost/cost_text.h"

namespace mulligan {
namespace {

double total_flops(const Profile& profile) {
  double flops = 0;
  for (const CostRow& row : profile.rows) flops += row.flops;
  return flops;
}

LoaderOptions options_of(const RunConfig& config, std::size_t phase) {
  LoaderOptions options = loader_options(config, unchecked_training_data(config), 0, 1);
  options.max_segment_tokens = config.phases[phase].sequence_length;
  return options;
}

// Seconds of each call of `program`, median over `repeats`.
std::vector<double> seconds_of_calls(Program& program, int repeats) {
  std::vector<std::vector<double>> runs;
  for (int repeat = 0; repeat < repeats; ++repeat) runs.push_back(program.run_profiled());
  std::vector<double> medians, values(runs.size());
  for (std::size_t call = 0; call < runs.front().size(); ++call) {
    for (std::size_t run = 0; run < runs.size(); ++run) values[run] = runs[run][call];
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    medians.push_back(values[values.size() / 2]);
  }
  return medians;
}

}  // namespace

std::size_t chosen_phase(const RunConfig& config, const std::string& name) {
  if (name.empty()) return 0;
  const auto found = std::ranges::find(config.phases, name, &Phase::name);
  if (found != config.phases.end()) return static_cast<std::size_t>(found - config.phases.begin());
  throw config_error("this run has no phase '{}'; there are: {}.", name,
                     fmt::join(config.phases | std::views::transform(&Phase::name), ", "));
}

Profile profile_step(LoadedConfig& loaded, PluginHost& host, const ProfileOptions& options) {
  const RunConfig& config = loaded.config;
  resolve_run_plugins(loaded, host);
  const std::size_t phase = chosen_phase(config, options.phase);
  const auto start = std::chrono::steady_clock::now();
  const std::string section = backend_section(config.phases[phase]);
  OwnEngine own(config, section, make_phase_plugins(loaded, host, section), 1);
  Prefetcher data(std::make_unique<Loader>(options_of(config, phase)),
                  static_cast<std::size_t>(config.data.prefetch));
  own.engine.initialise(static_cast<std::uint64_t>(config.run.seed));
  own.engine.enter(phase);
  Backend& backend = *own.plugins.backend;
  std::int64_t made = 0;
  const auto seconds_of_step = [&] {
    backend.synchronize();
    const auto began = std::chrono::steady_clock::now();
    own.groups.set_rates({made, horizon_steps(config), 0, 0});
    own.engine.step(++made, data);
    backend.synchronize();
    return seconds_since(began);
  };
  Profile profile;
  profile.backend = backend.info().description;
  profile.tokens = config.train.tokens_per_step;

  seconds_of_step();  // touches all memory once
  profile.first_step_seconds = seconds_since(start);
  std::vector<double> steps;
  for (int step = 0; step < options.steps; ++step) steps.push_back(seconds_of_step());
  std::ranges::sort(steps);
  profile.step_seconds = steps[steps.size() / 2];

  std::vector<CostRow> rows;
  for (const PlannedStep& planned : own.engine.plan().steps(phase)) {
    const std::int64_t runs = planned.runs_per_step;
    if (runs == 0) continue;
    Program* program = planned.program;
    const std::vector<double> seconds = seconds_of_calls(*program, options.steps);
    const Graph& graph = program->graph();
    for (std::size_t index = 0; index < seconds.size(); ++index) {
      const Call& call = graph.calls()[index];
      const Cost cost = call_cost(graph, call, config.phases[phase].sequence_length, known_cards().front());
      const auto times = static_cast<double>(runs);
      rows.push_back({role_name(planned.role), call.kernel, options.by_shape ? shape_text(graph, call) : "",
                      "", runs, 0, times * (cost.matmul_flops + cost.attention_flops), times * cost.bytes, 0,
                      times * seconds[index]});
      profile.call_seconds += static_cast<double>(runs) * seconds[index];
    }
  }
  profile.peak_memory_bytes = peak_memory_bytes();
  profile.peak_device_memory_bytes = static_cast<std::int64_t>(backend.peak_allocated_bytes());
  profile.rows = summed(rows);
  return profile;
}

std::string format_profile(const Profile& profile) {
  TextLines text;
  text.line("one step of {} tokens on {}", grouped(profile.tokens), profile.backend);
  text.line("");
  add_cost_table(text, "program: kernel", profile.rows, profile.call_seconds, false);
  text.line("");
  text.line("sum of the calls    {:>10.3f} ms", 1e3 * profile.call_seconds);
  text.line("whole step (median) {:>10.3f} ms, {:.0f} tokens/s, {:.0f} GFLOP/s of matmuls and attention",
            1e3 * profile.step_seconds, static_cast<double>(profile.tokens) / profile.step_seconds,
            total_flops(profile) / profile.step_seconds / 1e9);
  text.line("peak memory         {:>10.1f} MB of this process",
            static_cast<double>(profile.peak_memory_bytes) / 1e6);
  return text.take();
}

std::string profile_json(const Profile& profile) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const CostRow& row : profile.rows) {
    Json json{{"program", row.program}, {"kernel", row.kernel}, {"calls", row.calls},
              {"seconds", row.seconds}, {"flops", row.flops},   {"bytes", row.bytes_read}};
    if (!row.shapes.empty()) json["shapes"] = row.shapes;
    rows.push_back(std::move(json));
  }
  const Json json{{"backend", profile.backend},
                  {"tokens_per_step", profile.tokens},
                  {"tokens_per_second", static_cast<double>(profile.tokens) / profile.step_seconds},
                  {"step_seconds", profile.step_seconds},
                  {"first_step_seconds", profile.first_step_seconds},
                  {"calls_seconds", profile.call_seconds},
                  {"flops", total_flops(profile)},
                  {"peak_memory_bytes", profile.peak_memory_bytes},
                  {"peak_device_memory_bytes", profile.peak_device_memory_bytes},
                  {"rows", rows}};
  return json.dump(2) + "\n";
}

}  // namespace mulligan
