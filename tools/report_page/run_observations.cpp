#include "tools/report_page/run_observations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>
#include <set>

#include "framework/core/error.h"
#include "tools/report_page/comparison.h"
#include "tools/stats/study.h"

namespace mulligan::report {

void require_one_condition(const std::vector<RunRecord>& runs) {
  const auto name = [&](std::size_t run) { return runs[run].files.directory.string(); };
  for (const ComparedKey& key : compare(runs).keys) {
    if (key.key == "run.seed") continue;
    const auto other = std::ranges::find_if(key.values, [&](const auto& v) { return v != key.values[0]; });
    throw config_error(
        "'{}' has {} = {} and '{}' has {}, so they are not runs of one condition; give runs that differ in run.seed alone.",
        name(0), key.key, key.values[0], name(static_cast<std::size_t>(other - key.values.begin())), *other);
  }
  std::map<std::string, std::size_t> by_seed;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [first, is_new] = by_seed.emplace(runs[i].setting("run.seed"), i);
    if (!is_new)
      throw config_error(
          "'{}' and '{}' both have run.seed = {}, which counts once; give runs of different seeds.",
          name(first->second), name(i), first->first);
  }
}

namespace {

struct Metric {
  const char *name, *what;
  // The window of its values: steps of training, or validation tokens by these counts of `ttt` or `result`.
  enum Window { validation, artifact, adaptation, training } window = validation;
};
const Metric all_metrics[] = {
    {"val_bpb", "bits per byte of the trained model"},
    {"quantised_bpb", "bits per byte of the artifact", Metric::artifact},
    {"ttt_bpb", "bits per byte with test-time training", Metric::adaptation},
    {"val_loss_nats", "validation loss in nats per token"},
    {"train_loss_nats", "mean training loss in nats per token", Metric::training},
};

const Metric& metric_named(const std::string& name) {
  const auto found = std::ranges::find(all_metrics, name, &Metric::name);
  if (found != std::end(all_metrics)) return *found;
  throw config_error("there is no metric '{}'; choose one of {}.", name,
                     fmt::join(all_metrics | std::views::transform(&Metric::name), ", "));
}

std::optional<double> value_of(const RunRecord& run, const Metric& metric) {
  const bool trained = metric.window == Metric::training;
  const auto value = run.figure(trained ? "train_loss/train_loss_run_nats" : metric.name);
  return value && (trained || std::isfinite(*value)) ? value : std::nullopt;
}

std::string window_of(const RunRecord& run, const Metric& metric) {
  const auto scored = [](double tokens, double bytes) {
    return fmt::format("{:.0f} validation tokens of {:.0f} bytes", tokens, bytes);
  };
  const ResultValue& result = run.result;
  // A mean over other steps is another figure: over the first ones, which are the worst, or over a later part.
  std::string text =
      metric.window == Metric::training ? fmt::format("steps 0 to {:.0f}", result.number("steps", 0))
      : metric.window == Metric::artifact
          ? scored(static_cast<double>(run.quantized()->tokens), static_cast<double>(run.quantized()->bytes))
      : metric.window == Metric::adaptation
          ? scored(run.ttt.number("with_ttt/tokens", 0), run.ttt.number("with_ttt/bytes", 0))
          : scored(result.number("val_tokens", 0), result.number("val_bytes", 0));
  if (!run.fills_in_masked()) return text;
  text += ", masked tokens";
  std::vector<std::string> keys = {"share", "mask_share", "random_share"};
  // A validation's tokens are drawn once; a mean over training has new ones at every step.
  if (metric.window != Metric::training) keys.insert(keys.end(), {"token", "seed"});
  for (const std::string& key : keys)
    text += fmt::format(", model.masking.{} {}", key, run.setting("model.masking." + key));
  return text;
}

// The factor "configuration" of each run: the settings in which the runs differ.
std::vector<std::string> configurations(const Comparison& comparison) {
  std::vector<std::string> labels(comparison.runs.size());
  for (const ComparedKey& key : comparison.keys) {
    if (key.key == "run.seed") continue;
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] += fmt::format("{}{}={}", labels[i].empty() ? "" : ", ", key.key, key.values[i]);
  }
  return labels;
}

}  // namespace

std::string run_metrics_text() {
  std::vector<std::string> all;
  for (const Metric& metric : all_metrics) all.push_back(fmt::format("{} ({})", metric.name, metric.what));
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string final_metric(const std::vector<RunRecord>& runs) {
  for (const char* name : {"ttt_bpb", "quantised_bpb", "val_bpb"}) {
    const Metric& metric = metric_named(name);
    if (std::ranges::all_of(runs, [&](const RunRecord& run) { return value_of(run, metric).has_value(); }))
      return name;
  }
  throw data_error(
      "no score is there of all these runs: neither val_bpb nor quantised_bpb nor ttt_bpb; finish them, or "
      "name another --metric.");
}

stats::Observations observe_runs(const std::vector<RunRecord>& runs, const std::string& metric_name,
                                 const std::vector<std::string>& factors) {
  const Metric& metric = metric_named(metric_name);
  stats::Observations all{metric_name, factors, {}};
  std::vector<std::string> whole;
  if (factors.empty()) {
    whole = configurations(compare(runs));
    if (std::ranges::any_of(whole, [](const std::string& label) { return !label.empty(); }))
      all.factors = {"configuration"};
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    const std::string directory = run.files.directory.string();
    const std::optional<double> value = value_of(run, metric);
    if (!value) {
      throw data_error(
          "'{}' has no {} ({}): it was not finished, not scored in this way, or its score is void; leave it "
          "out or choose another --metric.",
          directory, metric.name, metric.what);
    }
    stats::Observation seen{directory, {}, run.setting("run.seed"), *value, window_of(run, metric)};
    for (const std::string& factor : factors) {
      if (std::ranges::find(run.settings, factor, &ResolvedSetting::key) == run.settings.end())
        throw config_error("'{}' has no setting '{}'.", directory, factor);
      seen.levels.push_back(run.setting(factor));
    }
    if (factors.empty() && !all.factors.empty()) seen.levels.push_back(whole[i]);
    all.values.push_back(std::move(seen));
  }
  return all;
}

std::string study_of_runs(const std::vector<RunRecord>& runs) {
  const auto groups = compare(runs).groups;
  const bool several = std::ranges::any_of(groups, [](const SeedGroup& g) { return g.runs.size() > 1; });
  if (groups.size() < 2 || !several) return {};
  try {
    return stats::study_text(stats::make_study(observe_runs(runs, final_metric(runs))));
  } catch (const Error& error) {
    return fmt::format("No statistics over seeds: {}\n", error.what());
  }
}

double bytes_per_token(const std::vector<RunRecord>& runs) {
  if (runs.empty()) throw data_error("there is no run to take bytes per token from; give --bytes-per-token.");
  std::optional<double> found;
  for (const RunRecord& run : runs) {
    const double tokens = run.result.number("val_tokens", 0), bytes = run.result.number("val_bytes", 0);
    if (tokens == 0 || bytes == 0) {
      throw data_error(
          "'{}' does not say how many bytes and tokens it was scored on; give --bytes-per-token.",
          run.files.directory.string());
    }
    const double ratio = bytes / tokens;
    if (found && std::abs(ratio - *found) > 1e-9 * *found) {
      throw data_error("'{}' was scored on other text than '{}'.", run.files.directory.string(),
                       runs.front().files.directory.string());
    }
    found = ratio;
  }
  return *found;
}

namespace {

namespace fs = std::filesystem;

stats::ArenaRun arena_run(const RunRecord& run) {
  const std::string directory = run.files.directory.string();
  const auto loss = run.result.number("val_loss_nats"), steps = run.result.number("steps");
  if (!loss || !steps)
    throw data_error("'{}' has no result with a validation loss; finish it, or name another run.", directory);
  stats::ArenaRun found{directory, {}};
  for (const ValidationRecord& validation : run.metrics.validations)
    found.losses[validation.step] = validation.val_loss_nats;
  found.losses.emplace(static_cast<std::int64_t>(*steps), *loss);
  return found;
}

// The finished runs in the folders where `runs` lie that have the same settings but for the seed.
void require_no_sibling_left_out(const std::vector<RunRecord>& runs) {
  std::set<fs::path> given, folders;
  for (const RunRecord& run : runs) {
    const fs::path whole = fs::weakly_canonical(run.files.directory);
    given.insert(whole);
    folders.insert(whole.parent_path());
  }
  for (const fs::path& folder : folders) {
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      const fs::path directory = entry->path();
      if (given.contains(fs::weakly_canonical(directory)) || !fs::exists(RunFiles{directory}.result()))
        continue;
      const RunRecord sibling = read_run(directory);
      if (compare({runs.front(), sibling}).groups.size() > 1) continue;
      throw config_error(
          "'{}' is a finished run of the same settings with run.seed = {} and is left out, but a result is of all its "
          "runs; name it, too.",
          directory.string(), sibling.setting("run.seed"));
    }
  }
}

}  // namespace

std::vector<stats::ArenaRun> arena_runs(const std::vector<RunRecord>& runs, std::vector<std::string>& notes) {
  require_no_doubts(runs);
  require_one_condition(runs);
  std::vector<stats::ArenaRun> found;
  for (const RunRecord& run : runs) {
    found.push_back(arena_run(run));
    const double ours = run.result.number("val_tokens", 0),
                 first = runs.front().result.number("val_tokens", 0);
    if (ours != first)
      throw data_error("'{}' was scored on {} targets and '{}' on {}; score both on the same.",
                       runs.front().files.directory.string(), first, run.files.directory.string(), ours);
  }
  require_no_sibling_left_out(runs);
  if (!runs.empty() && runs.front().setting("arena.track") != "modded3")
    notes.push_back(
        "the runs have no [arena] track, so nothing held them to the benchmark's model, data and batch");
  return found;
}

}  // namespace mulligan::report
