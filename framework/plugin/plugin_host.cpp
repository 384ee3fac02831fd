#include "framework/plugin/plugin_host.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <boost/dll/runtime_symbol_info.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "framework/config/schema.h"
#include "framework/core/file.h"
#include "framework/plugin/crash_report.h"
#include "framework/plugin/plugin_call.h"
#include "framework/plugin/plugin_table_check.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// "an optimizer", "a loss".
std::string with_article(PluginKind kind) {
  return fmt::format("{} {}", kind == PluginKind::optimizer ? "an" : "a", kind_word(kind));
}

fs::path resolved(const fs::path& path) {
  std::error_code failed;
  fs::path result = fs::canonical(path, failed);
  return failed ? path : result;
}

void add_places(std::string_view list, const std::string& origin, std::vector<PluginPlace>& places) {
  while (!list.empty()) {
    const std::size_t colon = std::min(list.find(':'), list.size());
    if (colon > 0) places.push_back({origin, fs::path(list.substr(0, colon))});
    list.remove_prefix(std::min(colon + 1, list.size()));
  }
}

Error unusable(const PluginFile& file) {
  return config_error("the plugin file '{}' {}.", file.path.string(), file.problem);
}

PluginHost::SearchedPlace look_into(const PluginPlace& place) {
  PluginHost::SearchedPlace searched{place, {}, {}};
  std::error_code failed;
  const fs::file_status status = fs::status(place.path, failed);
  if (!fs::exists(status)) {
    searched.problem = "does not exist";
  } else if (!fs::is_directory(status)) {
    searched.files.push_back(inspect_plugin_file(place.path));
  } else {
    std::vector<fs::path> paths;
    fs::directory_iterator entries(place.path, failed);
    if (failed) searched.problem = "cannot be read";
    for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
      const std::string name = entries->path().filename().string();
      if (name.starts_with("mulligan_") && name.ends_with(".so")) paths.push_back(entries->path());
    }
    std::ranges::sort(paths);
    for (const fs::path& path : paths) searched.files.push_back(inspect_plugin_file(path));
  }
  return searched;
}

// The name as it stands in the source, where a C++ compiler has encoded it.
std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && name ? name.get() : symbol;
}

// Loads a library and never unloads it. Objects, kernels and strings of a plugin may be in use until the process ends. Static objects
// of a refused library may have registered handlers that run at exit.
void* load_library(const fs::path& path) {
  const PluginCallNote note(path.c_str(), "static initialisation");
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    note_loaded_library(path.string());
    return library;
  }
  const char* text = dlerror();
  std::string reason = text ? text : "the dynamic linker gives no reason";
  if (const std::string place = path.string() + ": "; reason.starts_with(place))
    reason.erase(0, place.size());
  constexpr std::string_view undefined = "undefined symbol: ";
  if (reason.starts_with(undefined)) {
    std::string symbol = reason.substr(undefined.size());
    symbol = symbol.substr(0, symbol.find_first_of(",\t "));
    throw config_error(
        "the plugin file '{}' cannot be loaded: it uses the symbol '{}', which neither it nor a library it "
        "names defines; compile the file that defines it into the plugin, or link its library.",
        path.string(), readable(symbol));
  }
  throw config_error("the plugin file '{}' cannot be loaded: {}.", path.string(), reason);
}

// The table that mlg_plugin() of the library returns; null where it returns none.
const mlg_plugin_header* table_of(void* library, const fs::path& path) {
  const PluginCallNote note(path.c_str(), "mlg_plugin");
  const auto function = reinterpret_cast<mlg_plugin_function>(dlsym(library, "mlg_plugin"));
  return function ? function() : nullptr;
}

}  // namespace

std::vector<PluginPlace> plugin_places(std::span<const std::string> command_line) {
  std::vector<PluginPlace> places;
  for (const std::string& list : command_line) add_places(list, "--plugin-path", places);
  if (const char* list = std::getenv("MULLIGAN_PLUGIN_PATH"))
    add_places(list, "MULLIGAN_PLUGIN_PATH", places);
  places.push_back({"the installation", program_plugin_folder()});
  return places;
}

fs::path program_plugin_folder() {
  const fs::path program = boost::dll::program_location();
  return program.parent_path().parent_path() / "lib" / "mulligan" / "plugins";
}

bool is_own_plugin(const fs::path& library) {
  return resolved(library).parent_path() != resolved(program_plugin_folder());
}

const std::vector<PluginHost::SearchedPlace>& PluginHost::searched_places() {
  if (!searched_) {
    for (const PluginPlace& place : places_) looked_into_.push_back(look_into(place));
    searched_ = true;
  }
  return looked_into_;
}

PluginHandle PluginHost::load(PluginKind kind, const std::string& name, const fs::path& path) {
  if (path.empty()) {
    for (const PluginHandle& plugin : loaded_) {
      if (plugin->kind() == kind && plugin->name() == name) return plugin;
    }
    return open(find(kind, name));
  }
  const PluginFile file = inspect_plugin_file(path);
  if (!file.problem.empty()) throw unusable(file);
  if (file.marker->kind != kind) {
    throw config_error("the plugin file '{}' holds {} ('{}'), but {} is wanted here; give another path.",
                       path.string(), with_article(file.marker->kind), file.marker->name, with_article(kind));
  }
  if (!name.empty() && file.marker->name != name) {
    throw config_error(
        "the plugin file '{}' holds the {} '{}', but plugin = \"{}\" is wanted here; correct one of the two.",
        path.string(), kind_word(kind), file.marker->name, name);
  }
  return open(file);
}

fs::path PluginHost::locate(PluginKind kind, const std::string& name) {
  for (const PluginHandle& plugin : loaded_) {
    if (plugin->kind() == kind && plugin->name() == name) return plugin->path();
  }
  try {
    return resolved(find(kind, name).path);
  } catch (const Error&) {
    return {};
  }
}

PluginFile PluginHost::find(PluginKind kind, const std::string& name) {
  const PluginFile* found = nullptr;
  const PluginFile* broken = nullptr;
  for (const SearchedPlace& searched : searched_places()) {
    for (const PluginFile& file : searched.files) {
      const bool named = file.marker ? file.marker->kind == kind && file.marker->name == name
                                     : file.path.filename() == "mulligan_" + name + ".so";
      if (!named) continue;
      if (!file.problem.empty()) {
        if (!broken) broken = &file;
      } else if (!found) {
        found = &file;
      } else if (resolved(file.path) != resolved(found->path) &&
                 sha256_hex_of_file(file.path) != sha256_hex_of_file(found->path)) {
        throw config_error(
            "two different libraries offer the {} '{}', '{}' and '{}'; remove one or say which with "
            "path = \"...\".",
            kind_word(kind), name, found->path.string(), file.path.string());
      }
    }
  }
  if (found) return *found;
  if (broken) throw unusable(*broken);
  throw not_found(kind, name);
}

Error PluginHost::not_found(PluginKind kind, const std::string& name) {
  std::vector<std::string> names;
  std::string places;
  for (const SearchedPlace& searched : searched_places()) {
    std::string rejected;
    std::size_t usable = 0;
    for (const PluginFile& file : searched.files) {
      if (!file.problem.empty()) {
        rejected += fmt::format(", {} {}", file.path.filename().string(), file.problem);
      } else {
        ++usable;
        if (file.marker->kind == kind) names.push_back(file.marker->name);
      }
    }
    places += fmt::format("{} '{}' ({}{})", places.empty() ? "" : ",", searched.place.path.string(),
                          searched.problem.empty()
                              ? fmt::format("from {}: {} plugin{}, none of them this", searched.place.origin,
                                            usable, usable == 1 ? "" : "s")
                              : fmt::format("from {}: {}", searched.place.origin, searched.problem),
                          rejected);
  }
  if (const std::string why = why_no_plugin(name); !why.empty())
    return config_error("there is no {} plugin '{}', {}.", kind_word(kind), name, why);
  const std::string nearest = nearest_name(name, names);
  return config_error("there is no {} plugin '{}'{}; looked in{}; add its folder with --plugin-path.",
                      kind_word(kind), name,
                      nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                      places.empty() ? " no place at all" : places);
}

PluginHandle PluginHost::open(const PluginFile& file) {
  const fs::path path = resolved(file.path);
  std::string sha256 = sha256_hex_of_file(path);
  for (const PluginHandle& plugin : loaded_) {
    if (plugin->kind() != file.marker->kind || plugin->name() != file.marker->name) continue;
    if (plugin->path() == path || plugin->sha256() == sha256) return plugin;
    throw config_error(
        "the {} '{}' of '{}' is in use already, and '{}' has the same name; rename one of the two.",
        kind_word(plugin->kind()), plugin->name(), plugin->path().string(), path.string());
  }

  const PluginCallNote note(path.c_str(),
                            "mlg_plugin, whose table is read");  // damaged, it may lead anywhere
  void* library = load_library(path);
  const mlg_plugin_header* table = table_of(library, path);
  if (const std::string problem = table_problem(table, *file.marker); !problem.empty()) {
    throw config_error("the plugin file '{}' {}.", path.string(), problem);
  }
  loaded_.push_back(std::make_shared<const Plugin>(table, path, std::move(sha256)));
  return loaded_.back();
}

}  // namespace mulligan
