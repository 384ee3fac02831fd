#include "tools/stats/observations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ranges>
#include <sstream>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan::stats {
namespace {

constexpr std::uint64_t largest_file = std::uint64_t{64} << 20;

// Fields of a line by RFC 4180: between commas, quoted where they hold commas or quotes (doubled).
std::vector<std::string> csv_fields(std::string_view line, const std::filesystem::path& path,
                                    std::size_t number) {
  std::vector<std::string> fields = {""};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line.substr(i).starts_with("\"\"")) {
      fields.back() += line[++i];
    } else if (line[i] == '"' && (quoted || i == 0 || line[i - 1] == ',')) {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  if (quoted)
    throw data_error("'{}' line {}: a quoted field does not end in its line.", path.string(), number);
  return fields;
}

double number_in(const std::string& text, const std::filesystem::path& path, std::size_t line,
                 const std::string& column) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw data_error("'{}' line {}: column '{}' holds '{}', which is not a finite number.", path.string(),
                     line, column, text);
  }
  return value;
}

}  // namespace

std::string condition_of(const Observations& all, const Observation& value) {
  if (value.levels.empty()) return "all";
  if (value.levels.size() == 1) return value.levels.front();
  std::string label;
  for (std::size_t f = 0; f < value.levels.size(); ++f) {
    label += fmt::format("{}{}={}", f ? ", " : "", all.factors[f], value.levels[f]);
  }
  return label;
}

void require_one_window(const Observations& all) {
  for (const Observation& value : all.values) {
    if (value.window == all.values.front().window) continue;
    throw data_error(
        "{} of '{}' was taken over {}, that of '{}' over {}: figures over different windows cannot be "
        "compared; score both over the same.",
        all.metric, all.values.front().run, all.values.front().window, value.run, value.window);
  }
}

Observations read_observations(const std::filesystem::path& path, const std::string& metric) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  const std::string text = read_file(path, largest_file);
  std::istringstream lines(text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text);
  std::vector<std::pair<std::size_t, std::vector<std::string>>> records;  // with the numbers of their lines
  std::string whole;
  for (std::size_t number = 1; std::getline(lines, whole); ++number) {
    if (whole.ends_with('\r')) whole.pop_back();
    if (!whole.empty()) records.emplace_back(number, csv_fields(whole, path, number));
  }
  if (records.empty())
    throw data_error("'{}' is empty; its first line holds the names of the columns.", path.string());
  const std::vector<std::string>& names = records.front().second;
  const auto column = [&](std::string_view name) -> std::size_t {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  const std::size_t value_column = column(metric);
  if (value_column == names.size()) {
    throw data_error("'{}' has no column '{}', only {}; name the column of the values with --metric.",
                     path.string(), metric, fmt::join(names, ", "));
  }
  Observations all;
  all.metric = metric;
  std::vector<std::size_t> factors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (column(names[i]) != i) throw data_error("'{}' has two columns '{}'.", path.string(), names[i]);
    if (i == value_column || names[i] == "seed" || names[i] == "run" || names[i] == "window") continue;
    factors.push_back(i);
    all.factors.push_back(names[i]);
  }
  for (const auto& [line, fields] : records | std::views::drop(1)) {
    if (fields.size() != names.size()) {
      throw data_error("'{}' line {} has {} fields, the first line {}.", path.string(), line, fields.size(),
                       names.size());
    }
    const auto text_of = [&, &cells = fields](std::string_view name) {
      return column(name) < names.size() ? cells[column(name)] : std::string();
    };
    Observation value{text_of("run"), {}, text_of("seed"), 0, text_of("window")};
    if (value.run.empty()) value.run = fmt::format("line {}", line);
    for (const std::size_t factor : factors) value.levels.push_back(fields[factor]);
    value.value = number_in(fields[value_column], path, line, metric);
    all.values.push_back(std::move(value));
  }
  if (all.values.empty()) throw data_error("'{}' has no line with values.", path.string());
  return all;
}

std::string observations_csv(const Observations& all) {
  const auto quoted = [](const std::string& field) {
    if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
    std::string text = "\"";
    for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + '"';
  };
  std::string text = "run,seed,window";
  for (const std::string& factor : all.factors) text += ',' + quoted(factor);
  text += ',' + quoted(all.metric) + '\n';
  for (const Observation& value : all.values) {
    text += fmt::format("{},{},{}", quoted(value.run), quoted(value.seed), quoted(value.window));
    for (const std::string& level : value.levels) text += ',' + quoted(level);
    text += fmt::format(",{}\n", value.value);
  }
  return text;
}

}  // namespace mulligan::stats
