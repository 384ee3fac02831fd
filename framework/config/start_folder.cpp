#include "framework/config/start_folder.h"

#include <algorithm>
#include <map>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLongestPath = 1 << 16;

// A run's own configuration, and that in an artifact; not another file that lies in a run directory.
bool may_be_of_a_run(const fs::path& file) {
  return file.filename() == "config.toml" || file.extension() != ".toml";
}

// The folder that the run was started in, in whose directory `file` lies, where that is not the current one.
std::optional<fs::path> other_start_folder(const fs::path& file) {
  const fs::path note = file.parent_path() / kStartFolderFile;
  std::error_code failed;
  if (!may_be_of_a_run(file) || !fs::is_regular_file(note, failed)) return std::nullopt;
  std::string text = read_file(note, kLongestPath);
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

class Reader {
 public:
  void take(ConfigNode& leaf, bool pattern) {
    if (!leaf.is_leaf() || leaf.value.type() != ValueType::string || leaf.origin.file.empty()) return;
    const std::string path = leaf.value.string();
    if (path.empty() || path == "none" || fs::path(path).is_absolute()) return;
    const auto [known, anew] = folders_.try_emplace(leaf.origin.file);
    if (anew) known->second = other_start_folder(leaf.origin.file);
    const std::optional<fs::path>& folder = known->second;
    if (!folder) return;
    std::error_code failed;
    if (!fs::is_directory(*folder, failed)) {
      note(leaf.origin.file, *folder);
      return;
    }
    const fs::path there = *folder / path;
    leaf.value =
        ConfigValue(pattern && !fs::is_directory(there, failed) ? as_pattern(*folder, path) : there.string());
  }
  std::vector<std::string> notes() { return std::move(notes_); }

 private:
  void note(const std::string& file, const fs::path& folder) {
    std::string text = fmt::format(
        "the run of '{}' was started in '{}', which does not exist any more; its relative paths are taken from "
        "the current folder",
        printable(file), printable(folder.string()));
    if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(std::move(text));
  }

  std::map<std::string, std::optional<fs::path>> folders_;  // by file
  std::vector<std::string> notes_;
};

}  // namespace

void note_start_folder(const fs::path& run_directory) {
  write_file_atomically(run_directory / kStartFolderFile, fs::current_path().string() + "\n");
}

std::vector<std::string> take_from_start_folder(ConfigNode& tree) {
  Reader reader;
  const auto take = [&](const char* table, std::initializer_list<const char*> keys, bool pattern) {
    ConfigNode* node = tree.find(table);
    for (const char* key : keys) {
      if (ConfigNode* leaf = node == nullptr ? nullptr : node->find(key)) reader.take(*leaf, pattern);
    }
  };
  take("data", {"train", "validation", "validation_bytes"}, true);
  take("data", {"tokenizer", "validation_documents"}, false);
  take("run", {"directory"}, false);
  take("checkpoint", {"directory"}, false);
  take("init", {"from"}, false);
  ConfigNode* data = tree.find("data");
  if (ConfigNode* mix = data == nullptr ? nullptr : data->find("mix")) {
    for (ConfigNode& row : mix->rows) {
      if (ConfigNode* train = row.find("train")) reader.take(*train, true);
    }
  }
  return reader.notes();
}

}  // namespace mulligan
