#include "tools/report_page/comparison.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace mulligan::report {
namespace {

// Keys that name a run or its places, and so differ without changing what is computed.
bool names_the_run(std::string_view key) {
  return key == "run.name" || key == "run.directory" || key == "checkpoint.directory";
}

std::vector<std::string> distinct_labels(const std::vector<RunRecord>& runs) {
  std::map<std::string, int> uses;
  for (const RunRecord& run : runs) ++uses[run.name];
  std::vector<std::string> labels;
  for (const RunRecord& run : runs) {
    labels.push_back(uses[run.name] > 1 ? run.files.directory.lexically_normal().string() : run.name);
  }
  return labels;
}

std::optional<double> last_evaluation(const RunRecord& run) {
  const EvaluationRecord* evaluation = run.quantized();
  if (!evaluation || evaluation->val_bytes == 0) return {};
  return evaluation->val_bpb;
}

std::vector<ComparedFigure> figures_of(const std::vector<RunRecord>& runs) {
  using Pick = std::function<std::optional<double>(const RunRecord&)>;
  const auto result = [](std::optional<double> TrainingResult::*member) -> Pick {
    return [member](const RunRecord& run) { return run.result ? (*run.result).*member : std::nullopt; };
  };
  const auto seconds = [](const char* phase) -> Pick {
    return [phase](const RunRecord& run) -> std::optional<double> {
      if (!run.result) return {};
      for (const auto& [name, value] : run.result->phase_seconds) {
        if (name == phase) return value;
      }
      return {};
    };
  };
  std::vector<ComparedFigure> figures;
  const auto add = [&](const char* name, int digits, bool statistics, const Pick& pick) {
    ComparedFigure figure{name, digits, statistics, {}};
    for (const RunRecord& run : runs) figure.values.push_back(pick(run));
    if (std::ranges::any_of(figure.values, [](const auto& value) { return value.has_value(); })) {
      figures.push_back(std::move(figure));
    }
  };
  add("val_bpb", 5, true, result(&TrainingResult::val_bpb));
  add("val_bpb, quantised", 5, true, last_evaluation);
  add("val_bpb, test-time training", 5, true, [](const RunRecord& run) -> std::optional<double> {
    return run.ttt && run.ttt->bits ? run.ttt->with_bpb : std::nullopt;
  });
  // Losses of masked tokens are no figures beside those of the next token: rows of their own.
  const auto losses = [&](const char* loss, const char* masked, bool statistics,
                          std::optional<double> TrainingResult::*member) {
    for (const bool fills_in : {false, true}) {
      add(fills_in ? masked : loss, 5, statistics,
          [&, pick = result(member)](const RunRecord& run) -> std::optional<double> {
            return run.fills_in_masked() == fills_in ? pick(run) : std::nullopt;
          });
    }
  };
  losses("val_loss, nats", "val_loss of masked tokens, nats", true, &TrainingResult::val_loss_nats);
  losses("training loss, mean, nats", "training loss of masked tokens, mean, nats", true,
         &TrainingResult::run_loss_nats);
  losses("training loss, last step, nats", "training loss of masked tokens, last step, nats", false,
         &TrainingResult::final_loss_nats);
  add("artifact, bytes", 0, true, [](const RunRecord& run) -> std::optional<double> {
    return run.quantize ? std::optional(run.quantize->artifact_bytes) : std::nullopt;
  });
  add("steps", 0, true, result(&TrainingResult::steps));
  add("tokens", 0, false, result(&TrainingResult::tokens));
  add("tokens per second", 0, true, result(&TrainingResult::tokens_per_second));
  add("training, seconds", 2, true, seconds("train"));
  add("evaluation, seconds", 2, false, seconds("evaluate"));
  add("peak memory, bytes", 0, false, result(&TrainingResult::peak_memory_bytes));
  add("parameters", 0, false, result(&TrainingResult::parameters));
  return figures;
}

std::vector<ComparedKey> differing_keys(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const ResolvedSetting& setting : runs[i].settings) {
      auto& row = values[setting.key];
      row.resize(runs.size());
      row[i] = setting.value;
    }
  }
  std::vector<ComparedKey> keys;
  for (auto& [key, row] : values) {
    if (names_the_run(key) || std::ranges::adjacent_find(row, std::not_equal_to<>()) == row.end()) continue;
    keys.push_back({key, std::move(row)});
  }
  return keys;
}

std::vector<SeedGroup> seed_groups(const std::vector<RunRecord>& runs, const std::vector<ComparedKey>& keys) {
  std::vector<SeedGroup> groups;
  std::map<std::vector<std::string>, std::size_t> places;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> identity;
    for (const ComparedKey& key : keys) {
      if (key.key != "run.seed") identity.push_back(key.values[i]);
    }
    // Without its configuration, a run is like no other.
    if (runs[i].settings.empty()) identity = {"run", std::to_string(i)};
    const auto [place, added] = places.emplace(std::move(identity), groups.size());
    if (added) groups.emplace_back();
    groups[place->second].runs.push_back(i);
    groups[place->second].seeds.push_back(runs[i].setting("run.seed"));
  }
  return groups;
}

}  // namespace

std::optional<Statistic> statistic_of(const ComparedFigure& figure, const SeedGroup& group) {
  std::vector<double> values;
  for (const std::size_t run : group.runs) {
    if (figure.values[run]) values.push_back(*figure.values[run]);
  }
  if (values.empty()) return {};
  return mulligan::statistic_of(values);
}

Comparison compare(std::vector<RunRecord> runs) {
  Comparison comparison;
  comparison.labels = distinct_labels(runs);
  comparison.figures = figures_of(runs);
  comparison.keys = differing_keys(runs);
  comparison.groups = seed_groups(runs, comparison.keys);
  comparison.runs = std::move(runs);
  return comparison;
}

}  // namespace mulligan::report
