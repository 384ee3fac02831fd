#include "framework/config/stored_paths.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

using Visitor = std::function<void(const std::string& section, ConfigNode& table)>;

// Calls `visit` for every table below `node`, rows of lists included.
void each_table(const std::string& section, ConfigNode& node, const Visitor& visit) {
  visit(section, node);
  for (ConfigMember& member : node.members) {
    const std::string inner = section.empty() ? member.name : section + "." + member.name;
    if (member.node.is_table()) each_table(inner, member.node, visit);
    for (ConfigNode& row : member.node.rows) each_table(inner, row, visit);
  }
}

bool is_plugin_table(const std::string& section) {
  return section == "backend" || section == "loss" || section == "schedule" || section == "quantize" ||
         section == "phase.backend" || section == "ensemble" || section == "communicator" ||
         section == "wrapper" || section.starts_with("optimizer.") || section.starts_with("ttt.");
}

bool is_text(const ConfigNode& node) {
  return node.is_leaf() && node.value.type() == ValueType::string && !node.value.string().empty();
}

// A plugin's key for a folder that it fills by the way: it changes no result.
bool names_a_cache(const std::string& key) {
  return key == "cache" || key.ends_with("_cache") || key == "folder" || key.ends_with("_folder") ||
         key.ends_with("_directory") || key.ends_with("_dir");
}

bool names_a_file(const std::string& key, const std::string& value) {
  return key.ends_with("_path") || key.ends_with("_file") || value.find('/') != std::string::npos ||
         value.starts_with("~") || value == "." || value == "..";
}

bool is_plugin_name(const std::string& name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

bool is_stored(const ConfigNode& node) {
  return node.is_leaf() && node.origin.kind == Origin::Kind::stored;
}

std::string text_of(const ConfigNode* node) {
  return node != nullptr && is_text(*node) ? node->value.string() : std::string();
}

}  // namespace

bool is_configuration_of_a_run(const std::string& path) {
  const fs::path file(path);
  if (file.filename() != "config.toml") return false;
  const fs::path folder = file.parent_path();
  return std::ranges::any_of(std::initializer_list<const char*>{"metrics.jsonl", "result.json",
                                                                "weights.safetensors", "checkpoints"},
                             [&](const char* name) {
                               std::error_code failed;
                               return fs::exists(folder / name, failed);
                             });
}

void mark_stored_paths(ConfigNode& tree, const std::string& name) {
  config_error_if(tree.find("extends") != nullptr, "{}: a stored configuration may not extend another file.",
                  name);
  each_table({}, tree, [](const std::string& section, ConfigNode& table) {
    for (ConfigMember& member : table.members) {
      const std::string value = text_of(&member.node);
      if (value.empty()) continue;
      const bool plugins = is_plugin_table(section);
      config_error_if(plugins && member.name == "plugin" && !is_plugin_name(value),
                      "{}: plugin = {} is not the name of a plugin: those are letters, digits, - and _.",
                      member.node.origin.text(), toml_quoted(value));
      const bool path = member.name == "path" || (section == "ttt" && member.name == "audit") ||
                        (plugins && (names_a_cache(member.name) || names_a_file(member.name, value)));
      if (path) member.node.origin.kind = Origin::Kind::stored;
    }
  });
}

void allow_audit_log(ConfigNode& tree) {
  ConfigNode* audit = tree.find_path("ttt.audit");
  if (audit == nullptr || !is_stored(*audit)) return;
  const std::string name = text_of(audit);
  const bool plain = name.ends_with(".jsonl") && name.find('/') == std::string::npos;
  if (plain) audit->origin.kind = Origin::Kind::file;
}

std::vector<std::string> drop_stored_paths(ConfigNode& tree) {
  std::vector<std::string> notes;
  const auto note = [&](const ConfigNode& leaf, const std::string& what, const std::string& remedy) {
    notes.push_back(fmt::format("{}: {} = {} is not used, since stored data may not name {}",
                                leaf.origin.text(), what, toml_quoted(leaf.value.string()), remedy));
  };
  if (ConfigNode* kernels = tree.find_path("backend.kernels")) {
    const auto names_code = [](const ConfigNode& row) {
      const ConfigNode* path = row.find("path");
      return path != nullptr && is_stored(*path);
    };
    for (const ConfigNode& row : kernels->rows) {
      if (!names_code(row)) continue;
      note(*row.find("path"),
           fmt::format("the kernel '{}' of [[backend.kernels]], path", text_of(row.find("match"))),
           "code: the backend's own kernel computes; for the other, copy that file elsewhere and name it as "
           "configuration");
    }
    const std::size_t dropped = std::erase_if(kernels->rows, names_code);
    if (dropped > 0 && kernels->rows.empty()) tree.find("backend")->remove("kernels");
  }
  each_table({}, tree, [&](const std::string& section, ConfigNode& table) {
    std::erase_if(table.members, [&](const ConfigMember& member) {
      const bool audit = section == "ttt" && member.name == "audit";
      const bool cache = is_plugin_table(section) && names_a_cache(member.name);
      if (!is_stored(member.node) || !(audit || cache)) return false;
      const std::string key = section + "." + member.name;
      note(member.node, key,
           fmt::format("a place to write to; --set {}={} does", key, member.node.value.string()));
      return true;
    });
  });
  return notes;
}

namespace {

// The folder in which the run was started whose config.toml or artifact `file` is, where that is not the current one.
std::optional<fs::path> other_start_folder(const fs::path& file) {
  const fs::path note = file.parent_path() / kStartFolderFile;
  std::error_code failed;
  const bool of_a_run = file.filename() == "config.toml" || file.extension() != ".toml";
  if (!of_a_run || !fs::is_regular_file(note, failed)) return std::nullopt;
  std::string text = read_file(note, 1 << 16);
  if (text.ends_with('\n')) text.pop_back();
  const fs::path folder = text;
  if (!folder.is_absolute() || text.find('\0') != std::string::npos) {
    throw data_error("'{}' names no folder; write the one there in which the run was started.",
                     printable(note.string()));
  }
  if (fs::equivalent(folder, fs::current_path(failed), failed)) return std::nullopt;
  return folder;
}

// Signs of patterns in the folder's own name stand for themselves.
std::string as_pattern(const fs::path& folder, const std::string& rest) {
  std::string text;
  for (const char c : folder.string()) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return (fs::path(text) / rest).string();
}

}  // namespace

void note_start_folder(const fs::path& run_directory) {
  write_file_atomically(run_directory / kStartFolderFile, fs::current_path().string() + "\n");
}

std::vector<std::string> take_from_start_folder(ConfigNode& tree) {
  std::vector<std::string> notes;
  const auto take_leaf = [&](ConfigNode* leaf, bool pattern) {
    if (leaf == nullptr || !is_text(*leaf) || leaf->origin.file.empty()) return;
    const std::string path = leaf->value.string(), &file = leaf->origin.file;
    if (path == "none" || fs::path(path).is_absolute()) return;
    const std::optional<fs::path> folder = other_start_folder(file);
    if (!folder) return;
    std::error_code failed;
    if (!fs::is_directory(*folder, failed)) {
      std::string note = fmt::format(
          "the run of '{}' was started in '{}', which does not exist any more; its relative paths are taken from "
          "the current folder",
          printable(file), printable(folder->string()));
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
      return;
    }
    const fs::path there = *folder / path;
    leaf->value =
        ConfigValue(pattern && !fs::is_directory(there, failed) ? as_pattern(*folder, path) : there.string());
  };
  const auto take = [&](std::initializer_list<const char*> keys, bool pattern) {
    for (const char* key : keys) take_leaf(tree.find_path(key), pattern);
  };
  take({"data.train", "data.validation", "data.validation_bytes"}, true);
  take({"data.tokenizer", "data.validation_documents", "run.directory", "checkpoint.directory", "init.from"},
       false);
  if (ConfigNode* mix = tree.find_path("data.mix")) {
    for (ConfigNode& row : mix->rows) take_leaf(row.find("train"), true);
  }
  return notes;
}

}  // namespace mulligan
