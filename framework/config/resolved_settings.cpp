#include "framework/config/resolved_settings.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "framework/core/file.h"

namespace mulligan {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// One line of the resolved configuration, "name = value  # origin"; without a name: it is none.
ResolvedSetting resolved_setting(std::string_view line) {
  const std::size_t equals = line.find(" = ");
  if (line.starts_with('#') || line.starts_with('[') || equals == std::string_view::npos) return {};
  const std::string_view name = line.substr(0, equals), rest = line.substr(equals + 3);
  // The value may hold the mark inside of a string; an origin never does.
  const std::size_t mark = rest.rfind("  # ");
  const std::string_view origin = mark == std::string_view::npos ? "" : rest.substr(mark + 4);
  return {std::string(trimmed(name)), std::string(trimmed(rest.substr(0, mark))), std::string(origin)};
}

}  // namespace

std::vector<ResolvedSetting> resolved_settings(std::string_view text) {
  std::vector<ResolvedSetting> settings;
  std::map<std::string, int> rows;
  std::string table;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t depth = line.starts_with("[[") ? 2 : line.starts_with("[") ? 1 : 0;
    if (depth > 0) {
      table = line.substr(depth, line.find(']') - depth);
      if (depth == 2) {
        const int row = rows[table]++;
        table += fmt::format(".{}", row);
      }
      continue;
    }
    ResolvedSetting setting = resolved_setting(line);
    if (setting.key.empty()) continue;
    if (!table.empty()) setting.key = table + "." + setting.key;
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::string settings_digest(std::string_view resolved) {
  std::string settings;
  std::istringstream lines{std::string(resolved)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    // The origin is the comment after the value.
    const std::string_view setting = std::string_view(line).substr(0, line.rfind("  # "));
    settings += setting.substr(0, setting.find_last_not_of(' ') + 1);
    settings += '\n';
  }
  return sha256_hex(settings);
}

}  // namespace mulligan
