#include "framework/artifact/evaluation_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include "framework/artifact/code_size.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// Folders in which each folder is a plugin, and what those plugins share.
struct PluginFolder {
  const char* folder;
  const char* shared;  // nullptr: nothing
};
constexpr std::array<PluginFolder, 8> plugin_folders = {{{"plugins/backends", "plugins/backends/common"},
                                                         {"plugins/losses", nullptr},
                                                         {"plugins/schedules", nullptr},
                                                         {"plugins/quantizers", "plugins/quantizers/common"},
                                                         {"plugins/communicators", "plugins/common"},
                                                         {"plugins/transforms", nullptr},
                                                         {"optimizers", nullptr},
                                                         {"ttt", nullptr}}};

// `module` and all modules that it stands on.
void add_modules(const fs::path& root, const std::string& module, std::set<std::string>& folders) {
  const fs::path list = root / "framework" / module / "CMakeLists.txt";
  if (!fs::exists(list) || !folders.insert("framework/" + module).second) return;
  const std::string text = read_file(list);
  constexpr std::string_view prefix = "mulligan_";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    at += prefix.size();
    const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at), text.size());
    if (end > at) add_modules(root, text.substr(at, end - at), folders);
  }
}

void add_plugin(const fs::path& root, const std::string& plugin, std::set<std::string>& folders) {
  for (const PluginFolder& place : plugin_folders) {
    const std::string folder = std::string(place.folder) + "/" + plugin;
    if (plugin.empty() || !fs::is_directory(root / folder)) continue;
    folders.insert(folder);
    if (place.shared && fs::is_directory(root / place.shared)) folders.insert(place.shared);
    return;
  }
  throw data_error(
      "'{}' is not a plugin of the source tree '{}', so the code of an evaluation cannot be counted", plugin,
      root.string());
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The end of the literal that begins at `begin`, behind its closing quote; nothing is one: begin.
std::size_t literal_end(std::string_view text, std::size_t begin) {
  const bool raw = text[begin] == '"' && begin > 0 && text[begin - 1] == 'R';
  if (raw) {
    const std::size_t open = text.find('(', begin);
    if (open == text.npos) return text.size();
    const std::string close = ")" + std::string(text.substr(begin + 1, open - begin - 1)) + "\"";
    const std::size_t end = text.find(close, open);
    return end == text.npos ? text.size() : end + close.size();
  }
  // 1'000'000: a quote between digits separates them.
  const bool separator = text[begin] == '\'' && begin > 0 && is_word(text[begin - 1]) &&
                         begin + 1 < text.size() &&
                         std::isxdigit(static_cast<unsigned char>(text[begin + 1])) != 0 &&
                         std::isxdigit(static_cast<unsigned char>(text[begin - 1])) != 0;
  if ((text[begin] != '"' && text[begin] != '\'') || separator) return begin;
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != text[begin] && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(text.size(), at + 1);
}

}  // namespace

std::string without_comments(std::string_view source) {
  std::string out;
  const auto put_space = [&] {
    if (!out.empty() && out.back() != ' ' && out.back() != '\n') out += ' ';
  };
  const auto put_line = [&] {
    if (!out.empty() && out.back() == ' ') out.pop_back();
    if (!out.empty() && out.back() != '\n') out += '\n';
  };
  for (std::size_t at = 0; at < source.size();) {
    const std::string_view rest = source.substr(at);
    if (rest.starts_with("//")) {
      at = std::min(source.find('\n', at), source.size());
    } else if (rest.starts_with("/*")) {
      put_space();
      const std::size_t end = source.find("*/", at + 2);
      at = end == source.npos ? source.size() : end + 2;
    } else if (source[at] == '\n') {
      put_line();
      ++at;
    } else if (is_space(source[at])) {
      put_space();
      ++at;
    } else {
      const std::size_t end = std::max(at + 1, literal_end(source, at));
      out += source.substr(at, end - at);
      at = end;
    }
  }
  put_line();
  return out;
}

std::vector<const PluginTable*> scoring_tables(const RunConfig& config) {
  std::vector<const PluginTable*> tables{&config.backend};
  if (config.communicator) tables.push_back(&*config.communicator);
  if (!config.ttt) return tables;
  tables.insert(tables.end(), {&config.ttt->adapters, &config.ttt->optimizer});
  for (const auto* table : {&config.ttt->transform, &config.ttt->base, &config.ttt->base_optimizer}) {
    if (*table) tables.push_back(&**table);
  }
  return tables;
}

EvaluationSource evaluation_source(const fs::path& root, const std::vector<std::string>& plugins) {
  if (!fs::is_directory(root / "framework")) {
    throw data_error(
        "'{}' is not mulligan's source tree, so its code cannot be counted; name it with --source",
        root.string());
  }
  std::set<std::string> folders{"cmake", "launch/evaluator", "plugins/include"};
  for (const char* module : {"artifact", "ttt"}) add_modules(root, module, folders);
  for (const std::string& plugin : plugins) add_plugin(root, plugin, folders);
  EvaluationSource source{{folders.begin(), folders.end()}, {}};
  for (const std::string& folder : source.folders) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path name = entry.path().filename();
      const bool built = is_code(name) || name == "CMakeLists.txt" || name.extension() == ".cmake" ||
                         name.extension() == ".in";
      if (entry.is_regular_file() && built) source.files.push_back(entry.path().lexically_relative(root));
    }
  }
  // A kernel's folder holds the parts of several libraries: ops of the graph, signatures, what backends compute.
  std::vector<std::string> parts{"op", "signature"};
  parts.insert(parts.end(), plugins.begin(), plugins.end());
  for (const auto& entry : fs::recursive_directory_iterator(root / "plugins/kernels")) {
    const std::string stem = entry.path().stem().string();
    const bool taken = std::ranges::any_of(
        parts, [&](const std::string& part) { return stem == part || stem.starts_with(part + "_"); });
    if (entry.is_regular_file() && taken) source.files.push_back(entry.path().lexically_relative(root));
  }
  std::ranges::sort(source.files);
  return source;
}

std::string packed_as(const fs::path& name, const std::string& text) {
  return is_code(name) ? without_comments(text) : text;
}

std::string evaluation_archive(const fs::path& root, const EvaluationSource& source) {
  std::vector<std::pair<std::string, std::string>> contents;
  for (const fs::path& file : source.files)
    contents.emplace_back(file.generic_string(), packed_as(file, read_file(root / file)));
  return tar_archive(std::move(contents));
}

std::string packed_evaluation(const fs::path& root, const EvaluationSource& source) {
  return compress_once(Compression::brotli, evaluation_archive(root, source), packed_code_folder());
}

}  // namespace mulligan
