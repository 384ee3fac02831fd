#include "framework/ttt/scoring_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
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

}  // namespace

ReachableFiles files_for_scoring(const LoadedConfig& loaded, PluginHost& host) {
  ReachableFiles files;
  if (loaded.config.backend.plugin != "cpu") {
    files.change = all_but(find_shards({loaded.config.data.validation}, DataSplit::validation));
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
  files.read = system_folders();
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

Confinement confine_calls_of(const LoadedConfig& loaded, bool sockets) {
  const std::string& backend = loaded.config.backend.plugin;
  if (backend == "cpu") return confine_calls(sockets);
  return {false, false, fmt::format("sockets and programs (the backend '{}' may need them)", backend)};
}

}  // namespace mulligan
