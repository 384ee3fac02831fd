#include "tools/stats/observations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan::stats {
namespace {

constexpr std::uint64_t largest_file = std::uint64_t{64} << 20;

// Records of RFC 4180: fields between commas, quoted where they hold commas, quotes (doubled) or line breaks.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::filesystem::path& path) : text_(text), path_(path) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
  }

  // Whether there was another record; blank lines are passed over.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n';
    if (at_ >= text_.size()) return false;
    fields.clear();
    first_line_ = line_;
    while (true) {
      fields.push_back(field());
      if (at_ >= text_.size() || text_[at_] != ',') break;
      ++at_;
    }
    return true;
  }
  std::size_t line() const { return first_line_; }

 private:
  std::string field() {
    std::string value;
    if (at_ < text_.size() && text_[at_] == '"') {
      ++at_;
      while (true) {
        if (at_ >= text_.size())
          throw data_error("'{}' line {}: a quoted field does not end.", path_.string(), first_line_);
        if (text_[at_] == '"') {
          if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
          ++at_;
        }
        line_ += text_[at_] == '\n';
        value += text_[at_++];
      }
      ++at_;
      return value;
    }
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r')
      value += text_[at_++];
    return value;
  }

  std::string_view text_;
  const std::filesystem::path& path_;
  std::size_t at_ = 0, line_ = 1, first_line_ = 1;
};

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
  const std::string text = read_file(path, largest_file);
  CsvReader reader(text, path);
  std::vector<std::string> names, fields;
  if (!reader.next(names))
    throw data_error("'{}' is empty; its first line holds the names of the columns.", path.string());
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
  while (reader.next(fields)) {
    if (fields.size() != names.size()) {
      throw data_error("'{}' line {} has {} fields, the first line {}.", path.string(), reader.line(),
                       fields.size(), names.size());
    }
    const auto text_of = [&](std::string_view name) {
      return column(name) < names.size() ? fields[column(name)] : std::string();
    };
    Observation value;
    value.run = text_of("run");
    if (value.run.empty()) value.run = fmt::format("line {}", reader.line());
    value.seed = text_of("seed");
    value.window = text_of("window");
    for (const std::size_t factor : factors) value.levels.push_back(fields[factor]);
    value.value = number_in(fields[value_column], path, reader.line(), metric);
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
