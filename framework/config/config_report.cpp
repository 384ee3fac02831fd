#include "framework/config/config_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "framework/config/core_schema.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

// One [header] of the printed file. `settings` has its full dotted name, with the row's number for rows, and bare names.
struct PrintedTable {
  explicit PrintedTable(const std::string& table) : header("[" + table + "]"), settings(table) {}
  std::string header;
  Settings settings;
};

// Without the plugin's rows at hand: the keys as written, nested tables included.
void add_written(const ConfigNode& node, const std::string& prefix, Settings& out) {
  for (const ConfigMember& member : node.members) {
    if (member.node.is_leaf()) out.add({prefix + member.name, member.node.value, member.node.origin});
    if (member.node.is_table()) add_written(member.node, prefix + member.name + ".", out);
  }
}

void add_plugin_keys(const LoadedConfig& loaded, const PluginTable& table, Settings& out) {
  const auto resolved = loaded.plugins.find(table.section);
  for (Setting setting : table.host.all()) {
    // A path alone named the plugin: what is left of the path elsewhere must still say which it was.
    if (setting.name == "plugin" && setting.value.string().empty() && resolved != loaded.plugins.end())
      setting.value = ConfigValue(resolved->second.plugin());
    const bool may_be_empty = setting.name != "path" && setting.name != "plugin";
    if (may_be_empty || !setting.value.string().empty()) out.add(std::move(setting));
  }
  if (resolved == loaded.plugins.end()) {
    add_written(table.keys, {}, out);
  } else {
    for (const Setting& setting : resolved->second.settings().all()) out.add(setting);
  }
}

// The bound tables of the core schema come in declaration order: a new one starts where the dotted prefix changes.
std::vector<PrintedTable> all_tables(const LoadedConfig& loaded) {
  std::vector<PrintedTable> tables;
  for (Setting setting : loaded.core.all()) {
    const size_t dot = setting.name.rfind('.');
    const std::string table = setting.name.substr(0, dot);
    if (tables.empty() || tables.back().settings.table() != table) tables.emplace_back(table);
    setting.name = setting.name.substr(dot + 1);
    tables.back().settings.add(std::move(setting));
  }
  if (loaded.config.ttt) tables.emplace_back("ttt").settings = loaded.config.ttt->settings;
  for (const PluginTableRef& ref : plugin_tables(loaded.config)) {
    const std::string& section = ref.table->section;
    if (!section.starts_with("phase."))
      add_plugin_keys(loaded, *ref.table, tables.emplace_back(section).settings);
  }
  for (const char* list :
       {"data.mix", "init.values", "phase", "backend.kernels", "parameters", "quantize.tensors"}) {
    const auto rows = loaded.rows.find(list);
    for (size_t i = 0; rows != loaded.rows.end() && i < rows->second.size(); ++i) {
      const std::string table = fmt::format("{}.{}", list, i);
      PrintedTable& row = tables.emplace_back(table);
      row.header = fmt::format("[[{}]]", list);
      for (const Setting& setting : rows->second[i].all()) row.settings.add(setting);
      if (rows->first != "phase" || !loaded.config.phases[i].backend) continue;
      PrintedTable& backend = tables.emplace_back(table + ".backend");  // belongs to the row before it
      backend.header = "[phase.backend]";
      add_plugin_keys(loaded, *loaded.config.phases[i].backend, backend.settings);
    }
  }
  return tables;
}

}  // namespace

std::string print_resolved(const LoadedConfig& loaded) {
  std::string text =
      fmt::format("# Resolved configuration of {}: every key, followed by its origin.\n", loaded.file);
  for (const PrintedTable& table : all_tables(loaded)) {
    size_t width = 0;
    std::vector<std::string> lines;
    for (const Setting& setting : table.settings.all()) {
      lines.push_back(setting.name + " = " + to_toml(setting.value));
      if (lines.back().size() <= 48) width = std::max(width, lines.back().size());
    }
    text += "\n" + table.header + "\n";
    for (size_t i = 0; i < lines.size(); ++i) {
      text += fmt::format("{:<{}}  # {}\n", lines[i], width, table.settings.all()[i].origin.text());
    }
  }
  return text;
}

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
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    // The value may hold the mark inside of a string; an origin never does.
    const std::size_t mark = line.rfind("  # ");
    const auto trimmed = [&](std::size_t begin, std::size_t end) {
      const std::string text = line.substr(begin, end - begin);
      const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
      return text.substr(first, text.find_last_not_of(' ') + 1 - first);
    };
    settings.push_back({(table.empty() ? "" : table + ".") + trimmed(0, equals), trimmed(equals + 1, mark),
                        mark == std::string::npos ? "" : line.substr(mark + 4)});
  }
  return settings;
}

std::string settings_digest(std::string_view resolved) {
  std::string settings;
  for (const auto& [key, value, origin] : resolved_settings(resolved)) settings += key + " = " + value + "\n";
  return sha256_hex(settings);
}

std::string print_for_artifact(const LoadedConfig& loaded) {
  std::string text;
  for (const PrintedTable& table : all_tables(loaded)) {
    if (table.header == "[[backend.kernels]]") continue;
    text += table.header + "\n";
    for (const auto& [name, value, origin] : table.settings.all()) {
      const bool place = name == "cache" || name == "audit" || name == "kernel_file";
      const bool named = value.type() == ValueType::string && !value.string().empty();
      if (name != "path" && !(place && named)) text += fmt::format("{} = {}\n", name, to_toml(value));
    }
  }
  return text;
}

std::map<std::string, std::string> flat_settings(const LoadedConfig& loaded) {
  std::map<std::string, std::string> flat;
  for (const PrintedTable& table : all_tables(loaded)) {
    for (const Setting& setting : table.settings.all())
      flat[table.settings.full_name(setting.name)] = to_toml(setting.value);
  }
  return flat;
}

bool moves_score(std::string_view key, ScoreCommand command) {
  for (const char* idle : {"data.train", "data.prefetch", "data.exact_vocabulary", "backend.threads",
                           "eval.save_seconds", "ttt.audit"}) {
    if (key == idle) return false;
  }
  if (key == "train.compute_dtype" || key == "train.layercast") return true;
  for (const char* table : {"data.", "model.", "eval.", "backend.", "phase."}) {
    if (key.starts_with(table)) return true;
  }
  if (command == ScoreCommand::eval) return false;
  return key.starts_with("ttt.") || key == "run.seed";
}

std::vector<ConfigDifference> diff_configs(const LoadedConfig& left, const LoadedConfig& right) {
  std::map<std::string, ConfigDifference> merged;
  for (const auto& [key, value] : flat_settings(left)) merged[key].left = value;
  for (const auto& [key, value] : flat_settings(right)) merged[key].right = value;
  std::vector<ConfigDifference> differences;
  for (auto& [key, difference] : merged) {
    if (difference.left == difference.right) continue;
    difference.key = key;
    differences.push_back(std::move(difference));
  }
  return differences;
}

std::string format_differences(const std::vector<ConfigDifference>& differences) {
  const auto side = [](const std::string& value) { return value.empty() ? std::string("(none)") : value; };
  std::string text;
  for (const ConfigDifference& d : differences) {
    text += fmt::format("{}: {} -> {}\n", d.key, side(d.left), side(d.right));
  }
  return text;
}

}  // namespace mulligan
