#include <glob.h>

#include <algorithm>
#include <set>

#include "framework/core/error.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "framework/data/side_bytes.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> shards_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().extension() == ".bin") names.push_back(entry->path().string());
  }
  data_error_if(failed.value() != 0, "the folder '{}' cannot be read: {}; check the path and its permissions",
                folder.string(), failed.message());
  return names;
}

// The shards of one side of prepared data, all of them.
std::vector<std::string> shards_of_manifest(const fs::path& folder, const SplitRecord& split) {
  std::vector<std::string> names;
  for (const ShardRecord& record : split.shards) {
    const fs::path file = folder / record.file;
    std::error_code failed;
    data_error_if(
        !fs::exists(file, failed),
        "'{}' is named by the manifest next to it but is not there; bring it back, or name the shards to "
        "use one by one or by a pattern",
        file.string());
    names.push_back(file.string());
  }
  return names;
}

// By the names that published and prepared shards have. A folder that uses neither is taken whole.
std::vector<std::string> shards_by_name(const fs::path& folder, DataSplit split) {
  std::vector<std::string> names = shards_in(folder);
  const auto says = [](const std::string& name, const char* word) {
    return fs::path(name).filename().string().find(word) != std::string::npos;
  };
  const char* other = split == DataSplit::train ? "_val_" : "_train_";
  std::erase_if(names, [&](const std::string& name) { return says(name, other); });
  return names;
}

std::vector<std::string> shards_of_folder(const fs::path& folder, DataSplit split) {
  const std::optional<Manifest> manifest = find_manifest(folder);
  if (!manifest) return shards_by_name(folder, split);
  return shards_of_manifest(folder, split == DataSplit::train ? manifest->train : manifest->validation);
}

// The brackets or stars of a folder or file that is there are part of its name.
std::vector<std::string> shards_of_glob(const std::string& pattern) {
  fs::path named, escaped;
  for (const fs::path& part : fs::path(pattern)) {
    named /= part;
    std::error_code failed;
    std::string text;
    for (const char c : part.string()) {
      if (std::string_view("*?[\\").find(c) != std::string_view::npos && fs::exists(named, failed))
        text += '\\';
      text += c;
    }
    escaped /= text;
  }
  glob_t found{};
  std::vector<std::string> names;
  if (::glob(escaped.c_str(), 0, nullptr, &found) == 0)
    names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return names;
}

}  // namespace

std::vector<fs::path> find_files(const std::string& pattern, bool (*wanted)(const fs::path& file)) {
  std::error_code failed;
  std::vector<fs::path> files;
  for (const std::string& name :
       fs::is_directory(pattern, failed) ? shards_in(pattern) : shards_of_glob(pattern)) {
    if (wanted(name)) files.emplace_back(name);
  }
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> find_shards(const std::vector<std::string>& patterns, DataSplit split) {
  std::set<std::string> names;
  for (const std::string& pattern : patterns) {
    std::error_code failed;
    const bool folder = fs::is_directory(pattern, failed);
    std::vector<std::string> found = folder ? shards_of_folder(pattern, split) : shards_of_glob(pattern);
    const std::size_t tables =
        std::erase_if(found, [](const std::string& name) { return names_side_table(name); });
    data_error_if(found.empty() && tables > 0,
                  "'{}' names byte side tables and no token shard; tables belong into data.validation_bytes",
                  pattern);
    data_error_if(found.empty(),
                  "no {}token shard matches '{}'; run 'mulligan prepare' or give the right folder",
                  !folder                     ? ""
                  : split == DataSplit::train ? "training "
                                              : "validation ",
                  pattern);
    names.insert(found.begin(), found.end());
  }
  return {names.begin(), names.end()};
}

}  // namespace mulligan
