#include "framework/config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"

namespace mulligan {
namespace {

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

size_t levenshtein(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string number_text(const KeySpec& key, double value) {
  return key.type == ValueType::integer ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

std::string written(const ConfigNode& node) {
  if (node.is_table()) return "a table";
  if (node.kind == ConfigNode::Kind::table_list) return "a list of tables";
  return to_toml(node.value);
}

// The value of `node`, which was written for `key`.
ConfigValue checked_value(const KeySpec& key, const std::string& name, const ConfigNode& node) {
  ConfigValue value;
  if (node.is_leaf() && key.type == ValueType::string && !node.raw.empty() &&
      node.value.type() != ValueType::string) {
    value = ConfigValue(node.raw);  // `--set run.name=42` means the string
  } else if (!node.is_leaf() || !convert(node.value, key.type, value)) {
    throw config_error("{}: '{}' must be {}, not {}.", node.origin.text(), name, describe(key.type),
                       written(node));
  }
  const auto check_number = [&](double number) {
    if (std::isfinite(number) && number >= key.minimum && number <= key.maximum) return;
    const std::string allowed = allowed_values(key);
    throw config_error("{}: '{}' is {}, but must be {}.", node.origin.text(), name, written(node),
                       allowed.empty() ? "finite" : allowed);
  };
  if (value.type() == ValueType::integer) check_number(static_cast<double>(value.as<int64_t>()));
  if (value.type() == ValueType::real) check_number(value.as<double>());
  if (value.type() == ValueType::real_list)
    std::ranges::for_each(value.as<ConfigValue::Reals>(), check_number);
  if (value.type() == ValueType::string && !key.choices.empty() &&
      std::ranges::find(key.choices, value.string()) == key.choices.end()) {
    throw config_error("{}: '{}' is {}, but must be one of: {}.", node.origin.text(), name, to_toml(value),
                       fmt::join(key.choices, ", "));
  }
  return value;
}

// `name`: of the member below the table `path`.
[[noreturn]] void refuse_unknown_key(std::span<const KeySpec> keys, std::span<const std::string> elsewhere,
                                     const std::string& path, const ConfigMember& member,
                                     const std::string& name) {
  // An unknown table is shown by one of its keys: the full name says more than the table's.
  const ConfigNode* node = &member.node;
  std::string full = name;
  while (node->is_table() && !node->members.empty()) {
    full += "." + node->members.front().name;
    node = &node->members.front().node;
  }
  std::vector<std::string> candidates(elsewhere.begin(), elsewhere.end());
  for (const KeySpec& key : keys) candidates.push_back(key.name);
  std::string nearest = nearest_name(full, candidates);
  // A mistyped table of open content ([optimiser.x]) is best explained by the table's right name.
  if (nearest.empty() && full != name) nearest = nearest_name(name, candidates);
  const std::string hint =
      nearest.empty() ? "see docs/configuration.md or 'mulligan plugins NAME' for the keys there are."
                      : fmt::format("did you mean '{}'?", join(path, nearest));
  throw config_error("{}: unknown key '{}'; {}", node->origin.text(), join(path, full), hint);
}

// Refuses members of `table` that are not declared. `below`: its name below the table `path`.
void refuse_unknown_keys(std::span<const KeySpec> keys, std::span<const std::string> elsewhere,
                         const std::string& path, const ConfigNode& table, const std::string& below = {}) {
  for (const ConfigMember& member : table.members) {
    const std::string name = join(below, member.name);
    if (std::ranges::find(elsewhere, name) != elsewhere.end() ||
        std::ranges::find(keys, name, &KeySpec::name) != keys.end()) {
      continue;
    }
    if (std::ranges::none_of(keys, [&](const KeySpec& k) { return k.name.starts_with(name + "."); }))
      refuse_unknown_key(keys, elsewhere, path, member, name);
    if (!member.node.is_table()) {
      throw config_error("{}: '{}' is a table of keys and cannot be {}; write [{}] instead.",
                         member.node.origin.text(), join(path, name), written(member.node), join(path, name));
    }
    refuse_unknown_keys(keys, elsewhere, path, member.node, name);
  }
}

}  // namespace

Settings resolve_keys(std::span<const KeySpec> keys, const ConfigNode* table, const std::string& path,
                      const std::string& source, std::span<const std::string> elsewhere) {
  if (table != nullptr && !table->is_table()) {
    throw config_error("{}: '{}' must be a table, not {}; write [{}].", table->origin.text(), path,
                       written(*table), path);
  }
  if (table != nullptr) refuse_unknown_keys(keys, elsewhere, path, *table);
  Settings settings(path);
  for (const KeySpec& key : keys) {
    const ConfigNode* node = table == nullptr ? nullptr : table->find_path(key.name);
    if (node != nullptr) {
      settings.add({key.name, checked_value(key, join(path, key.name), *node), node->origin});
    } else if (key.is_required) {
      throw config_error("{}: the required key '{}' is missing ({}); set it to {}.", source,
                         join(path, key.name), key.help, describe(key.type));
    } else {
      settings.add({key.name, key.default_value, Origin{}});
    }
  }
  return settings;
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  for (const std::string& candidate : candidates) {
    const size_t distance = levenshtein(name, candidate);
    if (distance >= best_distance || 2 * distance > std::max(name.size(), candidate.size())) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string allowed_values(const KeySpec& key) {
  if (!key.choices.empty()) return fmt::format("{}", fmt::join(key.choices, ", "));
  const bool low = std::isfinite(key.minimum);
  const bool high = std::isfinite(key.maximum);
  if (low && high)
    return fmt::format("{} to {}", number_text(key, key.minimum), number_text(key, key.maximum));
  if (low) return fmt::format(">= {}", number_text(key, key.minimum));
  if (high) return fmt::format("<= {}", number_text(key, key.maximum));
  return {};
}

}  // namespace mulligan
