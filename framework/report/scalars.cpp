#include "framework/report/scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace mulligan {
namespace {

// Names hold the optimiser's name, which the user chose.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::vector<Scalar> scalars_of(const MetricsHistory& history) {
  std::vector<Scalar> scalars;
  const auto add = [&](std::int64_t step, double elapsed, const std::string& name, double value) {
    if (std::isfinite(value)) scalars.push_back({step, elapsed, name, value});
  };
  for (const StepRecord& s : history.steps) {
    const auto one = [&](const std::string& name, double value) {
      add(s.step, s.elapsed_seconds, name, value);
    };
    one("loss_nats", s.loss_nats);
    one("window_loss_nats", s.window_loss_nats);
    one("gradient_norm", s.gradient_norm);
    for (const auto& [name, value] : s.group_gradient_norm) one("gradient_norm/" + name, value);
    for (const auto& [name, value] : s.lr) one("lr/" + name, value);
    one("tokens", static_cast<double>(s.tokens));
    one("tokens_per_second", s.tokens_per_second);
    one("step_seconds", s.step_seconds);
    one("budget_fraction", s.budget_fraction);
  }
  for (const ValidationRecord& v : history.validations) {
    double elapsed = 0;
    for (const StepRecord& s : history.steps) {
      if (s.step <= v.step) elapsed = std::max(elapsed, s.elapsed_seconds);
    }
    add(v.step, elapsed, v.masked ? "val_loss_masked_nats" : "val_loss_nats", v.val_loss_nats);
    if (v.val_bytes > 0) add(v.step, elapsed, "val_bpb", v.val_bpb);
  }
  std::ranges::stable_sort(scalars, {}, &Scalar::step);
  return scalars;
}

std::string csv_table(const std::vector<Scalar>& scalars) {
  std::map<std::string, std::size_t> places;
  std::vector<std::string> names;
  for (const Scalar& scalar : scalars) {
    if (places.emplace(scalar.name, names.size()).second) names.push_back(scalar.name);
  }
  std::string table = "step,elapsed_seconds";
  for (const std::string& name : names) table += "," + csv_field(name);
  for (std::size_t first = 0; first < scalars.size();) {
    std::vector<std::string> row(names.size());
    const Scalar& head = scalars[first];
    for (; first < scalars.size() && scalars[first].step == head.step; ++first) {
      row[places[scalars[first].name]] = fmt::format("{}", scalars[first].value);
    }
    table += fmt::format("\r\n{},{}", head.step, head.elapsed_seconds);
    for (const std::string& value : row) table += "," + value;
  }
  return table + "\r\n";
}

}  // namespace mulligan
