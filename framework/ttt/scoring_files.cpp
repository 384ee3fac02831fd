#include "framework/ttt/scoring_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string_view>

#include "framework/data/shard.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The libraries in a folder, and that it may be looked through, but not its other files.
void add_libraries(const fs::path& folder, std::set<fs::path>& files) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().filename().string().find(".so") != std::string::npos) files.insert(entry->path());
  }
}

// The validation shards, as the configuration names them.
std::vector<fs::path> validation_shards(const LoadedConfig& loaded) {
  return find_shards({loaded.config.data.validation}, DataSplit::validation);
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  return path == folder || path.native().starts_with(folder.native() + "/");
}

// The folders of the validation shards, where also what they were made from may lie; of those that lie in a folder
// of the system itself, the shards.
std::vector<fs::path> hidden_files(const LoadedConfig& loaded) {
  std::set<fs::path> hidden;
  for (const fs::path& shard : validation_shards(loaded)) {
    const fs::path real = fs::canonical(shard), folder = real.parent_path();
    const bool deep = std::distance(folder.begin(), folder.end()) > 2;  // "/", "opt", ...
    hidden.insert(deep ? folder : real);
  }
  return {hidden.begin(), hidden.end()};
}

}  // namespace

ReachableFiles files_for_scoring(const LoadedConfig& loaded, PluginHost& host) {
  ReachableFiles files;
  if (loaded.config.backend.plugin != "cpu") {
    files.change = all_but(validation_shards(loaded));
    return files;
  }
  std::set<fs::path> libraries, folders;
  std::error_code failed;
  for (const PluginTableRef& table : plugin_tables(loaded.config)) {
    if (!table.table->path.empty()) libraries.insert(table.table->path);
  }
  for (const PluginHost::Finding& finding : host.findings()) {
    for (const PluginFile& file : finding.files) libraries.insert(file.path);
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  libraries.insert(program);
  for (const fs::path& library : libraries) folders.insert(library.parent_path());
  folders.insert(program.parent_path().parent_path() / "lib");
  if (const char* named = std::getenv("LD_LIBRARY_PATH")) {
    std::string_view rest = named;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.insert(fs::path(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  for (const fs::path& folder : folders) add_libraries(folder, libraries);
  files.read = system_folders(hidden_files(loaded));
  for (const KernelRow& row : loaded.config.kernels) files.read.emplace_back(row.path);
  files.read.insert(files.read.end(), libraries.begin(), libraries.end());
  files.look = {folders.begin(), folders.end()};
  return files;
}

void add_files_of_run(ReachableFiles& files, const fs::path& directory, const fs::path& weights) {
  std::error_code failed;
  // An audit log in the folder that the program was started in; what else lies there is not the run's.
  if (directory == ".")
    files.write.push_back(directory);
  else if (!directory.empty())
    files.change.push_back(directory);
  (fs::is_directory(weights, failed) ? files.change : files.read).push_back(weights);
}

std::string reachable_validation(const LoadedConfig& loaded, const ReachableFiles& files) {
  std::error_code failed;
  for (const fs::path& shard : validation_shards(loaded)) {
    const fs::path real = fs::canonical(shard, failed);
    for (const auto* paths : {&files.read, &files.change}) {
      for (const fs::path& path : *paths) {
        if (lies_in(real, fs::weakly_canonical(path, failed)))
          return fmt::format("the validation data, which lie in '{}'", path.string());
      }
    }
  }
  return {};
}

Confinement confine_calls_of(const LoadedConfig& loaded, bool sockets, std::span<const int> untouchable) {
  const std::string& backend = loaded.config.backend.plugin;
  if (backend == "cpu") return confine_calls(sockets, untouchable);
  return {false, false, fmt::format("sockets and programs (the backend '{}' may need them)", backend)};
}

}  // namespace mulligan
