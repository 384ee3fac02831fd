#include "tools/try/try.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/config/config_report.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/statistic.h"
#include "framework/core/temporary_path.h"
#include "framework/eval/evaluate.h"
#include "framework/report/machine.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/run/run_plugins.h"
#include "framework/run/training_data.h"
#include "tools/cost/dry_run.h"
#include "tools/report_page/run_record.h"
#include "tools/sweep/own_command.h"
#include "tools/sweep/sweep.h"

namespace mulligan::tries {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t baseline_seeds = 3;

bool in(const char* keys, const std::string& key) {
  return fnmatch(keys, key.c_str(), FNM_EXTMATCH) == 0;
}
// Where a run is, what it is called and its seed: not what is compared.
constexpr const char* names = "@(run.name|run.directory|run.seed|checkpoint.directory)";
// What both must have alike: data, validation, budget, bytes, and what the weights begin as.
constexpr const char* fixed =
    "@(arena.*|data.*|eval.*|init.*|ledger.*|model.vocabulary|run.threads|train.*_seconds|train.steps)";

LoadedConfig load(const std::string& path, const Request& request, PluginHost& host) {
  LoadedConfig loaded = load_run_config(path, request.overrides);
  if (loaded.config.data.tokenizer.empty())
    throw config_error("'{}' names no data.tokenizer, so there are no bits per byte to compare; name one.",
                       path);
  resolve_run_plugins(loaded, host);
  return loaded;
}

// Digests of the plugins that are the user's own, which change while the settings stay, or of the program's.
std::string plugin_digests(const LoadedConfig& loaded, PluginHost& host, bool own) {
  std::string text;
  for (const PluginHandle& plugin : plugins_in_use(loaded, host)) {
    if (is_own_plugin(plugin->path()) == own) text += plugin->sha256() + "\n";
  }
  return text;
}

std::string compared_digest(const LoadedConfig& loaded, PluginHost& host) {
  std::string text = plugin_digests(loaded, host, true);
  for (const auto& [key, value] : flat_settings(loaded)) {
    if (!in(names, key)) text += fmt::format("{} = {}\n", key, value);
  }
  return sha256_hex(text);
}

// Trains in the run directory of the configuration, going on where that was interrupted. Returns why the run was ended early
// (why_end), or "". Throws Error; ExitCode::interrupted for a signal. In a process of its own: a plugin that crashes ends that
// one alone, and its memory is its own.
std::string train_in_child(const LoadedConfig& loaded, const std::vector<std::string>& plugin_paths,
                           const AbortLimits& limits) {
  const RunFiles files{loaded.config.run.directory};
  if (fs::exists(files.result())) fs::remove_all(files.directory);  // of another configuration
  const std::string config = files.directory.string() + ".toml";
  write_file_atomically(config, print_resolved(loaded));
  OwnCommand command{{"train", config, "--resume", "--quiet"}, plugin_paths};
  command.log = files.log().string();
  std::string worse;
  int calls = 0;
  command.end = [&] {
    // Called at least five times a second.
    if (++calls % 5 == 0) worse = why_end(read_metrics(files.metrics()), limits);
    return !worse.empty();
  };
  if (!command.run()) return worse;
  fs::remove_all(loaded.config.checkpoint.directory);  // the run has ended
  return {};
}

// Of one configuration, by seed.
struct Runs {
  std::vector<double> values;  // val_bpb
  std::vector<fs::path> directories;
};

struct Try {
  const Request& request_;
  Memory& memory_;
  PluginHost& host_;
  RunLog log_;
  LoadedConfig base_ = load(request_.base, request_, host_),
               variant_ = load(request_.variant, request_, host_);
  std::string difference_ = {}, base_id_ = {}, config_ = {};  // config_: the variant's digest
  Json identity_ = Json::object(), record_ = Json::object();
  AbortLimits limits_ = {};
  Runs base_runs_ = {}, runs_ = {};
  ExitCode crash_ = ExitCode::run_failed;

  Result run() {
    refuse();
    identify();
    if (!begin()) return {record_, true};
    complete_baseline();
    // From here on the try is known, and goes on where it is stopped.
    record_["status"] = "running";
    memory_.save(record_);
    const fs::path folder = memory_.folder(record_.at("id"));
    write_file_atomically(folder / "config.toml", print_resolved(variant_));
    write_file_atomically(folder / "diff.txt", difference_);
    bool whole = true;
    for (std::size_t pair = 0; pair < pairs() && whole; ++pair) whole = run_pair(pair);
    if (whole) judge();
    memory_.save(record_);
    return {record_, false, crash_};
  }

  void refuse() {
    if (const std::string line = request_.note + request_.variant;
        printable(line) != line || line.find('\t') != line.npos)
      throw config_error(
          "--note has a control character, which results.tsv cannot hold; write it in one line.");
    LoadedConfig rehearsed = load_run_config(request_.variant, request_.overrides);
    static_cast<void>(dry_run(rehearsed, host_));
    std::vector<ConfigDifference> differences = diff_configs(base_, variant_);
    std::erase_if(differences, [](const ConfigDifference& d) { return in(names, d.key); });
    difference_ = format_differences(differences);
    log_.print("{}", difference_.substr(0, difference_.find_last_not_of('\n') + 1));
    for (const std::string& key : request_.also) {
      if (std::erase_if(differences, [&](const ConfigDifference& d) { return d.key == key; }) == 0)
        throw config_error("--also {}: the variant does not change that key; leave it out.", key);
    }
    std::vector<std::string> changed;
    for (const ConfigDifference& d : differences)
      if (in(fixed, d.key)) changed.push_back(d.key);
    if (changed.empty()) return;
    throw config_error("'{}' changes {}, which must be the base's; take it out, or allow it with --also {}.",
                       request_.variant, fmt::join(changed, ", "), fmt::join(changed, " --also "));
  }

  void identify() {
    const RunConfig& config = base_.config;
    const ValidationSet validation =
        load_validation(config.data, config.model.vocabulary, config.eval.tokens);
    const std::string program = sha256_hex_of_file("/proc/self/exe") + plugin_digests(base_, host_, false);
    identity_ = {{"base_config", compared_digest(base_, host_)},
                 {"data", sha256_hex(to_json_text(open_training_data(config, &validation).data))},
                 {"program", sha256_hex(program)},
                 {"machine", fmt::format("{}, {}", cpu_name(), host_name())}};
    base_id_ = id_of(identity_.at("base_config"));
    config_ = compared_digest(variant_, host_);
    if (config_ == identity_.at("base_config"))
      throw config_error("'{}' is the same configuration as its base '{}'; change something to try.",
                         request_.variant, request_.base);
    if (memory_.find(base_id_) != nullptr || request_.again) return;
    for (const Json& old : memory_.tries()) {
      if (!old.value("baseline", false) || old.at("config") != identity_.at("base_config")) continue;
      std::vector<std::string> changed = {"data", "program", "machine"};
      std::erase_if(changed,
                    [&](const std::string& what) { return old.value(what, "") == identity_.at(what); });
      throw config_error(
          "the seeds of '{}' were run with another {} (baseline {}); run them anew with --again, which keeps the old ones.",
          request_.base, fmt::join(changed, " and another "), old.at("id").get<std::string>());
    }
  }
  // Of the runs of a configuration with the same data, program and machine.
  std::string id_of(const std::string& config) const {
    Json identity = identity_;
    identity["base_config"] = config;
    return sha256_hex(identity.dump()).substr(0, 7);
  }

  Json new_record(const std::string& id, const std::string& note, const std::string& config) const {
    Json record = {{"id", id},         {"number", 0},  {"baseline", id == base_id_},
                   {"status", "keep"}, {"note", note}, {"base", request_.base},
                   {"config", config}};
    record.update(identity_);
    return record;
  }

  // False where the try was made before: record_ is its result then.
  bool begin() {
    const std::string first = sha256_hex(base_id_ + config_).substr(0, 7);
    std::string id = first;
    std::size_t times = 1;  // that it was begun, and once more
    for (; memory_.find(id) != nullptr; id = fmt::format("{}-{}", first, ++times))
      record_ = *memory_.find(id);
    const std::string status = record_.value("status", "");
    if (status == "running" || (times > 1 && !request_.again)) {
      const std::size_t before = record_.at("pairs");
      record_["pairs"] = std::max(before, request_.pairs);
      return status == "running" || (status == "undecided" && request_.pairs > before);
    }
    const bool side_by_side = request_.pairs > 0 || times > 1;
    const std::string file = fs::path(request_.variant).filename();
    record_ = new_record(id, request_.note.empty() ? file : request_.note, config_);
    record_.update({{"variant", request_.variant},
                    {"base_id", base_id_},
                    {"first_seed", 100 * (times - 1) + 1},
                    {"kept_pairs", side_by_side ? 0 : baseline_seeds},
                    {"pairs", std::max(request_.pairs, baseline_seeds)},
                    {"looks", Json::array()}});
    return true;
  }

  std::size_t pairs() const { return record_.at("pairs"); }

  // Adds one run, which is made unless it is there. False if a run of the variant crashes or is ended early: record_ says why.
  bool score(Runs& runs, const fs::path& folder, const std::string& row, bool of_base, std::size_t seed) {
    const std::string whose = fmt::format("seed {}, {}", seed, of_base ? "base" : "variant");
    Sweep sweep;
    sweep.config = of_base ? request_.base : request_.variant;
    sweep.directory = folder.string();
    sweep.seeds = {static_cast<double>(seed)};
    sweep.baseline = row;
    sweep.without_ttt = true;
    sweep.rows = {{row, sweep.config, {}, 1}};
    SweepTraining training;
    std::string ended_early;
    training.instead = [&](LoadedConfig& loaded) {
      log_.print("{}: training", whose);
      ended_early = train_in_child(loaded, request_.plugin_paths, of_base ? AbortLimits{} : limits_);
      if (!ended_early.empty()) throw run_error("{}", ended_early);
    };
    try {
      const SweepResult result = run_sweep(sweep, request_.overrides, host_, training, {nullptr});
      fs::remove(folder / "sweep.json");  // of this one run
      runs.values.push_back(result.cells[0][0].without.val_bpb);
      runs.directories.push_back(folder / row / fmt::format("seed_{}", seed));
      log_.print("{}: val_bpb {:.6f}", whose, runs.values.back());
      return true;
    } catch (const Error& error) {
      crash_ = error.code();
      if (crash_ == ExitCode::interrupted) throw;
      if (of_base)
        throw Error(crash_, fmt::format("the base '{}' fails with seed {}, so nothing was tried: {}",
                                        request_.base, seed, error.what()));
      record_["status"] = ended_early.empty() ? "crash" : "discard";
      record_["why"] = error.what();
      return false;
    }
  }

  // The base's own seeds: how its runs scatter, and how their training losses lie.
  void complete_baseline() {
    Runs runs;
    for (std::size_t seed = 1; seed <= baseline_seeds; ++seed)
      score(runs, memory_.log() / "runs", base_id_, true, seed);
    std::array<std::vector<double>, abort_fractions.size()> losses;
    for (const fs::path& directory : runs.directories) {
      const MetricsHistory metrics = read_metrics(RunFiles{directory}.metrics());
      for (std::size_t i = 0; i < losses.size(); ++i) {
        if (const auto loss = loss_at(metrics, abort_fractions[i])) losses[i].push_back(*loss);
      }
    }
    std::ranges::transform(losses, limits_.begin(), abort_limit);
    const Statistic all = statistic_of(runs.values);
    // Base and variant scatter alike, and independently: the more careful assumption.
    const double least = stats::smallest_difference(pairs(), look_alpha[0]) * std::sqrt(2.0) * *all.deviation;
    log_.print("base {}: val_bpb {:.6f}, standard deviation {:.6f}; {} pairs show {:.4f} with 80 % power",
               base_id_, all.mean, *all.deviation, pairs(), least);
    if (memory_.find(base_id_) != nullptr) return;
    Json record = new_record(base_id_, "baseline " + fs::path(request_.base).filename().string(),
                             identity_.at("base_config"));
    record["deviation"] = *all.deviation;
    record["smallest_difference"] = least;
    record["pairs"] = all.n;
    add_figures(record, runs);
    memory_.save(record);
  }

  // The first pairs are those of the kept baseline; others are run side by side, base and variant in turn.
  bool run_pair(std::size_t pair) {
    const bool kept = pair < record_.at("kept_pairs").get<std::size_t>();
    const fs::path folder = (kept ? memory_.log() : memory_.folder(record_.at("id"))) / "runs";
    const std::size_t seed = record_.at("first_seed").get<std::size_t>() + pair;
    return score(base_runs_, folder, kept ? base_id_ : "base", true, seed) &&
           score(runs_, folder, kept ? id_of(config_) : "variant", false, seed);
  }

  void judge() {
    const stats::TTest better = stats::paired_test(base_runs_.values, runs_.values);
    Json& looks = record_["looks"];
    record_["status"] = verdict_of(better, looks.size());
    looks.push_back({{"pairs", pairs()}, {"p", better.greater}, {"alpha", look_alpha.at(looks.size())}});
    record_.update({{"base_bpb", statistic_of(base_runs_.values).mean},
                    {"base_values", base_runs_.values},
                    {"delta", -better.difference},
                    {"error", better.standard_error},
                    {"p", better.greater},
                    {"why", ""}});
    add_figures(record_, runs_);
  }

  // Means of finished runs.
  void add_figures(Json& record, const Runs& runs) const {
    std::map<std::string, double> sums;
    const std::string memory =
        base_.config.backend.plugin == "cpu" ? "peak_memory_bytes" : "peak_device_memory_bytes";
    for (const fs::path& directory : runs.directories) {
      const report::ResultValue result(RunFiles{directory}.result());
      sums["training_seconds"] += result.required("seconds/train");
      sums["total_seconds"] += result.required("duration_seconds");
      sums["peak_vram_mb"] += result.required(memory) / 1e6;
      sums["num_steps"] += result.required("steps");
      sums["num_params_M"] += result.required("parameters") / 1e6;
    }
    record["val_bpb"] = statistic_of(runs.values).mean;
    record["values"] = runs.values;
    record["run_seconds"] = sums["total_seconds"];
    for (const auto& [key, sum] : sums) record[key] = sum / static_cast<double>(runs.values.size());
    record["peak_memory_mb"] = record.at("peak_vram_mb");
  }
};

}  // namespace

Result run_try(const Request& request, Memory& memory, PluginHost& host, const ConsoleOptions& console) {
  return Try{request, memory, host, {console, {}}}.run();
}

}  // namespace mulligan::tries
