#include "tools/report_page/run_observations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "framework/config/resolved_settings.h"
#include "framework/core/error.h"
#include "tools/report_page/comparison.h"
#include "tools/stats/study.h"

namespace mulligan::report {
namespace {

namespace fs = std::filesystem;

// Whether both are known and differ.
bool differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

}  // namespace

std::vector<std::string> find_doubts(RunRecord& run, std::string_view config) {
  std::vector<std::string> found;
  const auto doubt = [&](const fs::path& file, const char* what) {
    found.push_back(fmt::format("'{}' {}", file.string(), what));
  };
  const RunFiles& files = run.files;
  if (!config.empty() && differ(run.result.text("config_sha256"), settings_digest(config)))
    doubt(files.config(), "holds other settings than those that the run was made with");
  const std::string weights = run.result.text("weights_sha256");
  const std::string artifact = run.quantize.text("artifact_sha256");
  if (differ(run.quantize.text("weights_sha256"), weights))
    doubt(files.quantize_result(), "is of other weights than the run's");
  if (const std::string scored = run.ttt.text("weights_sha256");
      differ(scored, weights) && scored != artifact) {
    doubt(files.ttt_result(), "is of weights that are neither the run's nor its artifact");
    run.ttt = {};
  }
  // A score of an earlier artifact stays a line of the file, and is not this run's.
  std::erase_if(run.evaluations, [&](const EvaluationRecord& score) {
    return score.artifact && differ(score.weights_sha256, artifact);
  });
  return found;
}

std::string doubts_text(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const RunRecord& run : runs) {
    for (const std::string& doubt : run.doubts) text += fmt::format("warning: {}\n", doubt);
  }
  return text.empty() ? text : text + "\n";
}

void require_no_doubts(const std::vector<RunRecord>& runs) {
  for (const RunRecord& run : runs) {
    if (!run.doubts.empty())
      throw data_error("{}; make that result again, or leave the run out.", run.doubts.front());
  }
}

void require_one_condition(const std::vector<RunRecord>& runs) {
  const Comparison comparison = compare(runs);
  for (const ComparedKey& key : comparison.keys) {
    if (key.key == "run.seed") continue;
    const auto other = std::ranges::find_if(key.values, [&](const auto& v) { return v != key.values[0]; });
    if (other == key.values.end()) continue;
    const auto at = static_cast<std::size_t>(other - key.values.begin());
    throw config_error(
        "'{}' has {} = {} and '{}' has {}, so they are not runs of one condition; give runs that differ in run.seed alone.",
        runs[0].files.directory.string(), key.key, key.values[0], runs[at].files.directory.string(), *other);
  }
  std::map<std::string, std::string> by_seed;
  for (const RunRecord& run : runs) {
    const auto [first, is_new] = by_seed.emplace(run.setting("run.seed"), run.files.directory.string());
    if (!is_new)
      throw config_error(
          "'{}' and '{}' both have run.seed = {}, which counts once; give runs of different seeds.",
          first->second, run.files.directory.string(), first->first);
  }
}

namespace {

struct Figure {
  double value = 0;
  std::string window;
};

std::optional<Figure> scored(std::optional<double> value, std::optional<double> tokens,
                             std::optional<double> bytes) {
  if (!value || !std::isfinite(*value)) return {};
  return Figure{
      *value, fmt::format("{:.0f} validation tokens of {:.0f} bytes", tokens.value_or(0), bytes.value_or(0))};
}

// A score of result.json.
std::optional<Figure> of_result(const RunRecord& run, const char* score) {
  return scored(run.result.number(score), run.result.number("val_tokens"), run.result.number("val_bytes"));
}

std::optional<Figure> val_bpb(const RunRecord& run) {
  return of_result(run, "val_bpb");
}

std::optional<Figure> quantised_bpb(const RunRecord& run) {
  const EvaluationRecord* score = run.quantized();
  if (!score || score->val_bytes == 0) return {};
  return scored(score->val_bpb, static_cast<double>(score->val_tokens),
                static_cast<double>(score->val_bytes));
}

std::optional<Figure> ttt_bpb(const RunRecord& run) {
  if (!scores_bits(run.ttt)) return {};
  return scored(ttt_score(run.ttt), run.ttt.number("with_ttt/tokens"), run.ttt.number("with_ttt/bytes"));
}

// Losses under different maskings are not comparable: they are of other tokens, or of tokens with other context.
std::string hidden_window(const RunRecord& run, std::initializer_list<const char*> keys) {
  std::string text = ", masked tokens";
  for (const char* key : keys) text += fmt::format(", {} {}", key, run.setting(key));
  return run.fills_in_masked() ? text : "";
}

std::optional<Figure> val_loss(const RunRecord& run) {
  auto figure = of_result(run, "val_loss_nats");
  if (figure)
    figure->window +=
        hidden_window(run, {"model.masking.share", "model.masking.mask_share", "model.masking.random_share",
                            "model.masking.token", "model.masking.seed"});
  return figure;
}

// A mean over other steps is another figure: over the first ones, which are the worst, or over a later part.
std::optional<Figure> train_loss(const RunRecord& run) {
  const auto mean = run.result.number("train_loss/train_loss_run_nats");
  if (!mean) return {};
  return Figure{*mean, fmt::format("steps 0 to {:.0f}", run.result.number("steps", 0)) +
                           hidden_window(run, {"model.masking.share", "model.masking.mask_share",
                                               "model.masking.random_share"})};
}

struct Metric : RunMetric {
  std::optional<Figure> (*of)(const RunRecord&);
};
constexpr Metric all_metrics[] = {
    {{"val_bpb", "bits per byte of the trained model"}, val_bpb},
    {{"quantised_bpb", "bits per byte of the artifact"}, quantised_bpb},
    {{"ttt_bpb", "bits per byte with test-time training"}, ttt_bpb},
    {{"val_loss_nats", "validation loss in nats per token"}, val_loss},
    {{"train_loss_nats", "mean training loss in nats per token"}, train_loss},
};

const Metric& metric_named(const std::string& name) {
  for (const Metric& metric : all_metrics) {
    if (name == metric.name) return metric;
  }
  std::vector<std::string> names;
  for (const Metric& metric : all_metrics) names.emplace_back(metric.name);
  throw config_error("there is no metric '{}'; choose one of {}.", name, fmt::join(names, ", "));
}

std::string without_a_figure(const RunRecord& run, const Metric& metric) {
  return fmt::format(
      "'{}' has no {} ({}): it was not finished, not scored in this way, or its score is void; leave it "
      "out or choose another --metric.",
      run.files.directory.string(), metric.name, metric.what);
}

// The factor "configuration" of each run: the settings in which the runs differ.
std::vector<std::string> configurations(const Comparison& comparison) {
  std::vector<std::string> labels(comparison.runs.size());
  for (const ComparedKey& key : comparison.keys) {
    if (key.key == "run.seed") continue;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] += fmt::format("{}{}={}", labels[i].empty() ? "" : ", ", key.key, key.values[i]);
    }
  }
  return labels;
}

}  // namespace

std::span<const RunMetric> run_metrics() {
  static const std::vector<RunMetric> metrics(std::begin(all_metrics), std::end(all_metrics));
  return metrics;
}

std::string final_metric(const std::vector<RunRecord>& runs) {
  for (const char* name : {"ttt_bpb", "quantised_bpb", "val_bpb"}) {
    const Metric& metric = metric_named(name);
    if (std::ranges::all_of(runs, [&](const RunRecord& run) { return metric.of(run).has_value(); }))
      return name;
  }
  throw data_error(
      "no score is there of all these runs: neither val_bpb nor quantised_bpb nor ttt_bpb; finish them, or "
      "name another --metric.");
}

stats::Observations observe_runs(const std::vector<RunRecord>& runs, const std::string& metric_name,
                                 const std::vector<std::string>& factors) {
  const Metric& metric = metric_named(metric_name);
  stats::Observations all;
  all.metric = metric_name;
  all.factors = factors;
  std::vector<std::string> whole;
  if (factors.empty()) {
    whole = configurations(compare(runs));
    const bool differ = std::ranges::any_of(whole, [](const std::string& label) { return !label.empty(); });
    if (differ) all.factors = {"configuration"};
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    const std::optional<Figure> figure = metric.of(run);
    if (!figure) throw data_error("{}", without_a_figure(run, metric));
    stats::Observation value{
        run.files.directory.string(), {}, run.setting("run.seed"), figure->value, figure->window};
    for (const std::string& factor : factors) {
      const bool known = std::ranges::any_of(run.settings, [&](const auto& s) { return s.key == factor; });
      if (!known) throw config_error("'{}' has no setting '{}'.", run.files.directory.string(), factor);
      value.levels.push_back(run.setting(factor));
    }
    if (factors.empty() && !all.factors.empty()) value.levels.push_back(whole[i]);
    all.values.push_back(std::move(value));
  }
  return all;
}

std::string study_of_runs(const std::vector<RunRecord>& runs) {
  const Comparison comparison = compare(runs);
  const bool several =
      std::ranges::any_of(comparison.groups, [](const SeedGroup& g) { return g.runs.size() > 1; });
  if (comparison.groups.size() < 2 || !several) return {};
  try {
    return stats::study_text(stats::make_study(observe_runs(runs, final_metric(runs))));
  } catch (const Error& error) {
    return fmt::format("No statistics over seeds: {}\n", error.what());
  }
}

double bytes_per_token(const std::vector<RunRecord>& runs) {
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
  if (!found) throw data_error("there is no run to take bytes per token from; give --bytes-per-token.");
  return *found;
}

}  // namespace mulligan::report
