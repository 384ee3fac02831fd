#include "tools/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/json_file.h"
#include "framework/core/statistic.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/run_directory.h"
#include "tools/report_page/run_record.h"
#include "tools/stats/markdown_table.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;

// "12.3 +- 0.4"; "-" where there is nothing.
std::string mean_text(const std::vector<double>& values, int digits, double unit = 1) {
  if (values.empty()) return "-";
  const Statistic all = statistic_of(values);
  const std::string mean = fmt::format("{:.{}f}", all.mean / unit, digits);
  return all.deviation ? fmt::format("{} +- {:.{}f}", mean, *all.deviation / unit, digits) : mean;
}

// What is to be small, in one order for all rows.
std::vector<double> goals(const RowCost& row, bool target, bool energy) {
  const auto mean = [](const std::vector<double>& values) {
    return values.empty() ? HUGE_VAL : statistic_of(values).mean;
  };
  std::vector<double> all = {target ? mean(row.seconds_to_target) : -mean(row.tokens_per_second),
                             mean(row.device_bytes), mean(row.metric)};
  if (energy) all.push_back(mean(row.joules));
  return all;
}

bool beats(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

}  // namespace

SweepCost read_cost(const std::filesystem::path& directory, double target_loss_nats) {
  const RunFiles files{directory};
  const report::ResultValue result(files.result()), energy = result["energy"];
  SweepCost cost;
  cost.tokens_per_second = result.required("tokens_per_second");
  cost.process_bytes = result.required("peak_memory_bytes");
  cost.device_bytes = result.required("peak_device_memory_bytes");
  cost.energy_absent = energy ? energy.texts("absent") : std::vector<std::string>{"metrics.energy is off"};
  cost.joules = energy.number("joules");
  cost.joules_per_token = energy.number("joules_per_token");
  if (target_loss_nats <= 0) return cost;
  for (const StepRecord& step : read_metrics(files.metrics()).steps) {
    if (!(step.window_loss_nats <= target_loss_nats)) continue;
    cost.seconds_to_target = step.elapsed_seconds;
    break;
  }
  return cost;
}

nlohmann::ordered_json cost_json(const SweepCost& cost) {
  return {{"tokens_per_second", value_or_null<Json>(cost.tokens_per_second)},
          {"seconds_to_target", value_or_null<Json>(cost.seconds_to_target)},
          {"process_bytes", value_or_null<Json>(cost.process_bytes)},
          {"device_bytes", value_or_null<Json>(cost.device_bytes)},
          {"joules", value_or_null<Json>(cost.joules)},
          {"joules_per_token", value_or_null<Json>(cost.joules_per_token)},
          {"energy_absent", cost.energy_absent}};
}

std::vector<RowCost> row_costs(const Sweep& sweep, const SweepResult& result) {
  std::vector<RowCost> rows;
  const bool bits = sweep.metric == "val_bpb";
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const auto of_seeds = [&](std::optional<double> SweepCost::*figure) {
      std::vector<double> values;
      for (const SweepCell& cell : result.cells[i]) {
        if (!cell.cost || !((*cell.cost).*figure)) return std::vector<double>();
        values.push_back(*((*cell.cost).*figure));
      }
      return values;
    };
    rows.push_back({sweep.rows[i].name, sweep.rows[i].ranks, of_seeds(&SweepCost::tokens_per_second),
                    of_seeds(&SweepCost::seconds_to_target), of_seeds(&SweepCost::process_bytes),
                    of_seeds(&SweepCost::device_bytes), of_seeds(&SweepCost::joules),
                    of_seeds(&SweepCost::joules_per_token)});
    for (const SweepCell& cell : result.cells[i])
      rows.back().metric.push_back(bits ? cell.without.val_bpb : cell.without.val_loss_nats);
  }
  const bool energy = std::ranges::none_of(rows, [](const RowCost& row) { return row.joules.empty(); });
  for (RowCost& row : rows) {
    const std::vector<double> own = goals(row, sweep.target_loss_nats > 0, energy);
    row.pareto = std::ranges::none_of(rows, [&](const RowCost& other) {
      return beats(goals(other, sweep.target_loss_nats > 0, energy), own);
    });
  }
  return rows;
}

std::string cost_table(const Sweep& sweep, const SweepResult& result) {
  const std::vector<RowCost> rows = row_costs(sweep, result);
  std::vector<std::string> head = {"row", "ranks", "n", "tokens/s"};
  const bool target = sweep.target_loss_nats > 0;
  if (target) head.push_back(fmt::format("s to {:g} nats", sweep.target_loss_nats));
  for (const char* column : {"device MB", "process MB", "J", "mJ/token"}) head.emplace_back(column);
  head.push_back(sweep.metric);
  head.emplace_back("front");
  stats::Table table{head};
  for (const RowCost& row : rows) {
    std::vector<std::string> cells = {row.name, std::to_string(row.ranks), std::to_string(row.metric.size()),
                                      mean_text(row.tokens_per_second, 0)};
    if (target) cells.push_back(mean_text(row.seconds_to_target, 2));
    cells.insert(cells.end(), {mean_text(row.device_bytes, 2, 1e6), mean_text(row.process_bytes, 1, 1e6),
                               mean_text(row.joules, 1), mean_text(row.joules_per_token, 3, 1e-3),
                               mean_text(row.metric, 5), row.pareto ? "yes" : ""});
    table.add(std::move(cells));
  }
  std::string text = table.text();
  text += fmt::format(
      "Mean +- standard deviation over n seeds. Memory: peaks of the first rank. Front: no other row is as "
      "good in {}, device memory{} and {}, and better in one.\n",
      target ? "seconds to the target" : "tokens/s",
      std::ranges::any_of(rows, [](const RowCost& row) { return row.joules.empty(); }) ? "" : ", energy",
      sweep.metric);
  std::vector<std::string> reasons;
  for (const auto& cells : result.cells) {
    for (const SweepCell& cell : cells) {
      if (!cell.cost || cell.cost->joules) continue;
      for (const std::string& why : cell.cost->energy_absent) {
        if (std::ranges::find(reasons, why) == reasons.end()) reasons.push_back(why);
      }
    }
  }
  for (const std::string& why : reasons) text += fmt::format("No energy: {}.\n", why);
  return text;
}

}  // namespace mulligan
