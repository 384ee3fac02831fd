#include "tools/sweep/sweep.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <ranges>

#include "framework/config/schema.h"
#include "framework/config/toml_document.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/statistic.h"
#include "framework/eval/evaluator.h"
#include "framework/report/run_log.h"
#include "framework/run/eval_json.h"
#include "framework/run/run_files.h"
#include "framework/run/run_plugins.h"
#include "framework/run/weight_origin.h"
#include "framework/run/weights.h"
#include "framework/train/train.h"
#include "framework/ttt/ttt_session.h"
#include "tools/report_page/run_record.h"
#include "tools/sweep/own_command.h"

namespace mulligan {

void declare_keys(Schema<Sweep>& s) {
  s.key("config", &Sweep::config, "configuration of the runs, relative to this file").required();
  s.key("directory", &Sweep::directory,
        "folder of the runs and of sweep.json, relative to the current folder")
      .required();
  s.key("seeds", &Sweep::seeds, "values of run.seed").at_least(0).required();
  s.key("baseline", &Sweep::baseline, "name of the row that the others are compared with; empty: the first");
  s.key("metric", &Sweep::metric, "what the statistics are made of").one_of({"val_bpb", "val_loss_nats"});
  s.key("margin", &Sweep::margin,
        "within which a row counts as equal to the baseline, in the metric's unit; 0 = none")
      .range(0, 1e3);
  s.key("costs", &Sweep::costs, "also compare speed, memory and energy of the trainings");
  s.key("target_loss_nats", &Sweep::target_loss_nats,
        "mean training loss to which the seconds are told, with costs; 0 = none")
      .range(0, 1e3);
  s.key("ladder", &Sweep::ladder, "all rows at so many times their train.steps, such as [1, 2, 4]")
      .at_least(1);
  s.key("target_steps", &Sweep::target_steps,
        "steps of the training that the rows are compared for; 0 = not said")
      .at_least(0);
}

void declare_keys(Schema<SweepRow>& s) {
  s.key("name", &SweepRow::name, "name in the table").required();
  s.key("config", &SweepRow::config,
        "configuration of this row's runs, relative to this file; empty: the sweep's");
  s.key("set", &SweepRow::set, "overrides as of --set");
  s.key("ranks", &SweepRow::ranks, "processes on this machine that share each of its trainings")
      .range(1, 1024);
}

namespace {

namespace fs = std::filesystem;

bool is_ttt_key(const std::string& override) {
  return override.starts_with("ttt.");
}

// A folder's name from a row's.
std::string folder_name(const std::string& name) {
  std::string folder;
  for (const char c : name) folder += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  return folder;
}

// One seed of one row.
class Cell {
 public:
  Cell(const Sweep& sweep, const SweepRow& row, std::int64_t seed, const std::vector<std::string>& overrides,
       PluginHost& host, const SweepTraining& training, const ConsoleOptions& options)
      : sweep_(sweep), row_(row), overrides_(overrides), host_(host), training_(training), options_(options) {
    seed_ = fmt::format("seed_{}", seed);
    own_ = sweep.own;
    own_.settings.push_back(fmt::format("run.seed={}", seed));
  }

  SweepCell run(RunLog& log) {
    const fs::path trained = train_once(log);
    LoadedConfig loaded = load(row_.set, trained);
    SweepCell cell;
    if (!loaded.config.ttt || sweep_.without_ttt) {
      const report::ResultValue result(RunFiles{trained}.result());
      cell.without = validation(result);
      if (sweep_.metric == "val_bpb" && cell.without.bytes == 0) {
        throw config_error(
            "the score of row '{}' has no bytes, so there are no bits per byte; "
            "set metric = \"val_loss_nats\" in the sweep, or data.tokenizer.",
            row_.name);
      }
      if (sweep_.costs) cell.cost = read_cost(trained, sweep_.target_loss_nats);
      return cell;
    }
    log.print("== {}, {}", row_.name, seed_);
    return adapt(loaded, RunFiles{trained}.weights());
  }

  // The run directory of this cell's training: that of several rows where they differ in [ttt] alone.
  fs::path directory() const {
    const bool shared = training_set().empty() && row_.config.empty() && row_.ranks == 1;
    return fs::path(sweep_.directory) / (shared ? "shared" : folder_name(row_.name)) / seed_;
  }
  // What its losses are of (masking_text).
  std::string hidden() const { return masking_text(load(training_set(), directory()).config.model); }

 private:
  const std::string& config_file() const { return row_.config.empty() ? sweep_.config : row_.config; }
  // The row's overrides that training sees.
  std::vector<std::string> training_set() const {
    std::vector<std::string> set;
    std::ranges::copy_if(row_.set, std::back_inserter(set), [](const auto& key) { return !is_ttt_key(key); });
    return set;
  }
  // After the user's own overrides.
  std::vector<SettingsFrom> settings(const std::vector<std::string>& set, const fs::path& directory) const {
    return {own_, {row_.origin, set}, {sweep_.own.origin, {"run.directory=" + directory.string()}}};
  }
  LoadedConfig load(const std::vector<std::string>& set, const fs::path& directory) const {
    return load_run_config(config_file(), overrides_, settings(set, directory));
  }

  // Returns directory().
  fs::path train_once(RunLog& log) const {
    const fs::path directory = this->directory();
    LoadedConfig loaded = load(training_set(), directory);
    resolve_run_plugins(loaded, host_);
    const std::string digest = config_digest(loaded);
    if (is_trained(directory, digest)) {
      log.print("== training, {}: '{}' has it", seed_, directory.string());
      return directory;
    }
    log.print("== training, {}", seed_);
    if (row_.ranks > 1) {
      train_ranks(directory);
      write_file_atomically(rank_note(directory), note_text(RunFiles{directory}.result(), digest));
    } else if (training_.instead) {
      training_.instead(loaded);
    } else {
      TrainOptions options;
      static_cast<ConsoleOptions&>(options) = options_;
      options.overwrite = true;
      options.observers = training_.observers;
      train(loaded, host_, options);
    }
    return directory;
  }

  void train_ranks(const fs::path& directory) const {
    OwnCommand command{{"train", config_file(), "--overwrite"},
                       training_.plugin_paths,
                       row_.ranks,
                       directory,
                       fmt::format("training '{}' by {} ranks: ", directory.string(), row_.ranks),
                       directory.string() + "_ranks",
                       [&](std::string_view bytes) { show_bytes(options_, bytes); }};
    const auto set = [&](const std::vector<std::string>& settings) {
      for (const std::string& one : settings) command.words.insert(command.words.end(), {"--set", one});
    };
    set(overrides_);
    for (const SettingsFrom& some : settings(training_set(), directory)) set(some.settings);
    if (options_.quiet || options_.console == nullptr) command.words.emplace_back("--quiet");
    command.run();
  }

  // Test-time training, which goes on where an interrupted sweep left it.
  SweepCell adapt(LoadedConfig& loaded, const fs::path& weights) const {
    TttOptions options;
    static_cast<ConsoleOptions&>(options) = options_;
    options.resume = true;
    options.directory = fs::path(sweep_.directory) / folder_name(row_.name) / (seed_ + "_ttt");
    const auto load = [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
      load_weights(weights, store, layouts);
    };
    const TttResult result = run_ttt(loaded, host_, origin_of_weights(weights), load, options);
    SweepCell cell;
    if (result.without) cell.without = *result.without;
    cell.with = result.with;
    cell.collapsed = result.report.collapsed_at >= 0;
    for (const TttBatchReport& batch : result.report.batches) {
      if (!batch.adapted || batch.adapters.empty()) continue;
      cell.norm = batch.adapters.front().norm;
      cell.drift = batch.adapters.front().drift;
    }
    return cell;
  }

  // Whether this configuration was trained in `directory`, by as many ranks. Ranks write another digest than
  // one process, for they add the communicator that they chose; so the sweep notes what it asked them for.
  bool is_trained(const fs::path& directory, const std::string& digest) const {
    const fs::path result = RunFiles{directory}.result(), note = rank_note(directory);
    if (row_.ranks > 1)
      return fs::exists(result) && fs::exists(note) &&
             read_file(note, kLargestDescription) == note_text(result, digest);
    const report::ResultValue trained(result);
    return trained.text("config_sha256") == digest && trained.number("ranks", 1) == 1;
  }
  static fs::path rank_note(const fs::path& directory) { return directory.string() + "_ranks/trained.txt"; }
  std::string note_text(const fs::path& result, const std::string& digest) const {
    return fmt::format("{} ranks, configuration {}, result {}\n", row_.ranks, digest,
                       sha256_hex_of_file(result));
  }

  static EvalResult validation(const report::ResultValue& result) {
    EvalResult score;
    score.val_loss_nats = result.required("val_loss_nats");
    score.val_bpb = result.number("val_bpb", std::numeric_limits<double>::quiet_NaN());
    score.tokens = static_cast<std::uint64_t>(result.required("val_tokens"));
    score.bytes = static_cast<std::uint64_t>(result.required("val_bytes"));
    score.masked = result.flag("val_masked");
    return score;
  }

  const Sweep& sweep_;
  const SweepRow& row_;
  const std::vector<std::string>& overrides_;
  SettingsFrom own_;
  PluginHost& host_;
  const SweepTraining& training_;
  ConsoleOptions options_;
  std::string seed_;
};

using Json = nlohmann::ordered_json;

// "rows" of sweep.json.
Json rows_json(const Sweep& sweep, const SweepResult& result) {
  Json rows = Json::array();
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    Json cells = Json::array();
    for (std::size_t seed = 0; seed < sweep.seeds.size(); ++seed) {
      const SweepCell& cell = result.cells[row][seed];
      cells.push_back({{"seed", static_cast<std::int64_t>(sweep.seeds[seed])},
                       {"without_ttt", eval_json(cell.without)},
                       {"with_ttt", cell.with ? eval_json(*cell.with) : Json()},
                       {"norm", cell.norm},
                       {"drift", cell.drift},
                       {"collapsed", cell.collapsed}});
      if (cell.cost) cells.back()["cost"] = cost_json(*cell.cost);
    }
    rows.push_back({{"name", sweep.rows[row].name},
                    {"config", sweep.rows[row].config},
                    {"set", sweep.rows[row].set},
                    {"ranks", sweep.rows[row].ranks},
                    {"seeds", cells}});
  }
  return rows;
}

}  // namespace

std::size_t Sweep::baseline_row() const {
  return static_cast<std::size_t>(std::ranges::find(rows, baseline, &SweepRow::name) - rows.begin());
}

Sweep read_sweep(const std::string& path) {
  static const std::vector<std::string> rows_elsewhere = {"rows"};
  const ConfigNode tree = read_toml(path);
  Sweep sweep;
  read_keys(sweep, &tree, "", path, rows_elsewhere);
  sweep.own.origin = {Origin::Kind::file, path, 0};
  const auto next_to_this_file = [&](std::string& file) {
    if (!file.empty() && !fs::path(file).is_absolute()) file = (fs::path(path).parent_path() / file).string();
  };
  next_to_this_file(sweep.config);
  for (std::size_t i = 0; i < sweep.ladder.size(); ++i) {
    if (sweep.ladder[i] == std::floor(sweep.ladder[i]) && (i == 0 || sweep.ladder[i] > sweep.ladder[i - 1]))
      continue;
    throw config_error("{}: `ladder` has {}; list rising whole numbers, such as [1, 2, 4].", path,
                       sweep.ladder[i]);
  }
  const ConfigNode* rows = tree.find("rows");
  if (rows == nullptr || rows->rows.empty() || sweep.seeds.empty()) {
    throw config_error("{}: a sweep needs at least one [[rows]] and one of `seeds`; add them.", path);
  }
  for (const ConfigNode& row : rows->rows) {
    read_keys(sweep.rows.emplace_back(), &row, "rows", path);
    const ConfigNode* set = row.find("set");
    sweep.rows.back().origin = set == nullptr ? row.origin : set->origin;
    next_to_this_file(sweep.rows.back().config);
    const std::string folder = folder_name(sweep.rows.back().name);
    const auto same = std::ranges::count_if(
        sweep.rows, [&](const SweepRow& other) { return folder_name(other.name) == folder; });
    if (same > 1 || folder.empty() || folder == "shared") {
      throw config_error("{}: the row's name '{}' is used twice, empty or reserved; name it otherwise.", path,
                         sweep.rows.back().name);
    }
  }
  if (sweep.baseline.empty()) sweep.baseline = sweep.rows.front().name;
  if (sweep.baseline_row() == sweep.rows.size()) {
    throw config_error("{}: baseline = \"{}\" names no [[rows]]; there are: {}.", path, sweep.baseline,
                       fmt::join(sweep.rows | std::views::transform(&SweepRow::name), ", "));
  }
  return sweep;
}

stats::Study sweep_study(const Sweep& sweep, const SweepResult& result) {
  return stats::make_study(observations_of(rows_json(sweep, result), sweep.metric),
                           {sweep.baseline, sweep.margin});
}

namespace {

// Losses of masked tokens and of the next token are no two scores of one thing, nor those of tokens that are hidden
// otherwise. `hidden`: what is, of a row of the sweep (masking_text).
void require_one_objective(const Sweep& sweep, const std::function<std::string(std::size_t row)>& hidden) {
  const std::string first = hidden(0);
  for (std::size_t row = 1; row < sweep.rows.size(); ++row) {
    const std::string other = hidden(row);
    if (other == first) continue;
    const auto objective = [](const std::string& text) { return text.empty() ? "the next token" : text; };
    throw config_error(
        "the rows '{}' and '{}' are of two objectives ([model.masking]): {}, and {}; their losses cannot be "
        "compared, so make two sweeps of them.",
        sweep.rows.front().name, sweep.rows[row].name, objective(first), objective(other));
  }
  if (first.empty() || sweep.metric == "val_loss_nats") return;
  throw config_error(
      "the sweep's rows fill in masked tokens (model.masking.share), "
      "whose loss is not in bits per byte; set metric = \"val_loss_nats\".");
}

}  // namespace

SweepResult run_sweep(const Sweep& sweep, const std::vector<std::string>& overrides, PluginHost& host,
                      const SweepTraining& training, const ConsoleOptions& options) {
  RunLog log(options, {});
  SweepResult result;
  result.cells.resize(sweep.rows.size());
  const auto cell_of = [&](std::size_t row, double seed) {
    return Cell(sweep, sweep.rows[row], static_cast<std::int64_t>(seed), overrides, host, training, options);
  };
  require_one_objective(sweep, [&](std::size_t row) { return cell_of(row, sweep.seeds.front()).hidden(); });
  for (const double seed : sweep.seeds) {
    for (std::size_t row = 0; row < sweep.rows.size(); ++row)
      result.cells[row].push_back(cell_of(row, seed).run(log));
  }
  const Json json = {{"config", sweep.config},
                     {"baseline", sweep.baseline},
                     {"rows", rows_json(sweep, result)},
                     {"statistics", stats::study_json(sweep_study(sweep, result))}};
  write_file_atomically(fs::path(sweep.directory) / "sweep.json", json.dump(1) + "\n");
  return result;
}

}  // namespace mulligan
