#include "framework/report/metrics_reader.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "framework/core/file.h"
#include "framework/report/json_lines.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double real(const Json& value) {
  return value.is_null() ? nan : value.get<double>();
}
// A number such as 1e300 is not a count: converting it would be undefined. Throws Json::type_error.
std::int64_t integer(const Json& value) {
  return value.get_ref<const Json::number_integer_t&>();
}
double real(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found == record.end() ? nan : real(*found);
}

// {"NAME": number, ...}; absent: no names.
template <typename T>
std::vector<std::pair<std::string, T>> by_name(const Json& record, const char* key,
                                               T (*number)(const Json&)) {
  std::vector<std::pair<std::string, T>> pairs;
  const auto found = record.find(key);
  if (found == record.end()) return pairs;
  for (const auto& [name, value] : found->get_ref<const Json::object_t&>())
    pairs.emplace_back(name, number(value));
  return pairs;
}

StepRecord step_record(const Json& json) {
  StepRecord record;
  record.step = integer(json.at("step"));
  record.loss_nats = real(json, "loss_nats");
  record.window_loss_nats = real(json, "window_loss_nats");
  if (const auto window = json.find("window"); window != json.end()) {
    record.window_first = integer(window->at(0));
    record.window_last = integer(window->at(1));
  }
  record.gradient_norm = real(json, "gradient_norm");
  record.group_gradient_norm = by_name<double>(json, "gradient_norm_of", real);
  record.lr = by_name<double>(json, "lr", real);
  record.tokens = integer(json.at("tokens"));
  record.tokens_per_second = real(json, "tokens_per_second");
  record.step_seconds = real(json, "step_seconds");
  record.slowest_step_seconds = real(json, "slowest_step_seconds");
  record.elapsed_seconds = real(json, "elapsed_seconds");
  record.budget_fraction = real(json, "budget_fraction");
  record.phase = json.value("phase", std::string());
  return record;
}

PhaseSwitchRecord phase_switch(const Json& json) {
  PhaseSwitchRecord record;
  record.step = integer(json.at("step"));
  record.from = json.at("from").get<std::string>();
  record.to = json.at("to").get<std::string>();
  record.lr_before = by_name<double>(json, "lr_before", real);
  record.lr_after = by_name<double>(json, "lr_after", real);
  record.optimizer_reset = json.at("optimizer_reset").get<bool>();
  record.state_sha256 = json.at("state_sha256").get<std::string>();
  record.loss_before_nats = real(json.at("probe_loss_nats").at(0));
  record.loss_after_nats = real(json.at("probe_loss_nats").at(1));
  if (json.contains("probe_tolerance_nats")) record.tolerance_nats = real(json, "probe_tolerance_nats");
  return record;
}

void add(MetricsHistory& history, const Json& json) {
  const auto& event = json.at("event").get_ref<const std::string&>();
  if (event == "step") {
    history.steps.push_back(step_record(json));
  } else if (event == "validation") {
    history.validations.push_back(
        {read_score(json), integer(json.at("step")), json.value("phase", std::string("validate"))});
  } else if (event == "restart") {
    history.restarts.push_back({integer(json.at("step")), json.at("optimizer").get<std::string>(),
                                integer(json.at("cycle")), real(json, "lr")});
  } else if (event == "phase_start") {
    history.phase_starts.push_back({integer(json.at("step")), json.at("phase").get<std::string>(),
                                    json.at("way").get<std::string>(), real(json, "budget_fraction")});
  } else if (event == "phase_switch") {
    history.phase_switches.push_back(phase_switch(json));
  } else if (event == "resume") {
    history.resumes.push_back(integer(json.at("step")));
  } else if (event == "memory") {
    history.memory =
        MemoryRecord{by_name<std::int64_t>(json, "tensors_bytes", integer),
                     by_name<std::int64_t>(json, "programs_bytes", integer), integer(json.at("arena_bytes"))};
  }
}

}  // namespace

MetricsHistory parse_metrics(std::string_view text, const std::string& origin) {
  MetricsHistory history;
  history.torn = read_json_lines(text, origin, [&](const Json& json) { add(history, json); });
  return history;
}

MetricsHistory read_metrics(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  return parse_metrics(read_file(path), path.string());
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

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
    if (v.bytes > 0) add(v.step, elapsed, "val_bpb", v.val_bpb);
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
