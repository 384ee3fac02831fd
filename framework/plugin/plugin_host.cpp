#include "framework/plugin/plugin_host.h"

#include <dlfcn.h>
#include <mulligan/backend.h>
#include <mulligan/communicator.h>
#include <mulligan/ensemble.h>
#include <mulligan/loss.h>
#include <mulligan/optimizer.h>
#include <mulligan/quantizer.h>
#include <mulligan/schedule.h>
#include <mulligan/transform.h>
#include <mulligan/ttt.h>
#include <mulligan/wrapper.h>

#include <boost/core/demangle.hpp>
#include <boost/dll/runtime_symbol_info.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>

#include "framework/config/schema.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_prefix = "mulligan_", file_suffix = ".so";

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

void look_into(PluginPlace& place) {
  std::error_code failed;
  const fs::file_status status = fs::status(place.path, failed);
  if (!fs::exists(status)) {
    place.problem = "does not exist";
  } else if (!fs::is_directory(status)) {
    place.files.push_back(place.path);
  } else {
    fs::directory_iterator entries(place.path, failed);
    if (failed) place.problem = "cannot be read";
    for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
      if (!plugin_name_of(entries->path()).empty()) place.files.push_back(entries->path());
    }
    std::ranges::sort(place.files);
  }
}

// Loads a library and never unloads it. Objects, kernels and strings of a plugin may be in use until the process ends. Static objects
// of a refused library may have registered handlers that run at exit.
void* load_library(const fs::path& path) {
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
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
        path.string(), boost::core::demangle(symbol.c_str()));
  }
  throw config_error("the plugin file '{}' cannot be loaded: {}.", path.string(), reason);
}

// The functions that every plugin of a kind must fill, by name. They follow one another in its table, from `create` on.
struct TableShape {
  std::size_t bytes, first;
  std::string required;
};

template <typename Table>
TableShape shape(const char* required) {
  return {sizeof(Table), offsetof(Table, create), required};
}

// By kind, from MLG_BACKEND on. `ttt` has adapters or base updates: who asks for one of them checks that it is there.
const TableShape& shape_of(std::uint32_t kind) {
  static const TableShape shapes[] = {
      shape<mlg_backend_table>(
          "create destroy info allocate free upload download copy zero add_kernels kernel_at prepare bind run release "
          "synchronize determinism replace_kernel queue work mark await made"),
      shape<mlg_loss_table>("create destroy record_forward record_backward"),
      shape<mlg_optimizer_table>("create destroy scalar_count record scalars"),
      shape<mlg_schedule_table>("create destroy rate"),
      shape<mlg_ttt_table>("create destroy"),
      shape<mlg_quantizer_table>("create destroy quantize"),
      shape<mlg_communicator_table>("create destroy open prepare submit join poll abort release"),
      shape<mlg_transform_table>("create destroy open close begin propose observe"),
      shape<mlg_ensemble_table>("create destroy make stored_bytes"),
      shape<mlg_wrapper_table>("create destroy scalar_count record scalars")};
  static_assert(std::size(shapes) == MLG_WRAPPER);
  return shapes[kind - MLG_BACKEND];
}

using AnyFunction = void (*)();

// Empty if the table is sound. Otherwise a reason that continues a sentence which begins with the file's name. Reads no byte
// beyond the table's own struct_size. `table` may be null.
std::string table_problem(const mlg_plugin_header* table) {
  if (!table) return "returned no table from mlg_plugin";
  if (table->magic != MLG_ABI_MAGIC) {
    return fmt::format(
        "begins its table with the magic number {:#010x} instead of {:#010x}; fill the table with "
        "the SDK's macros",
        table->magic, MLG_ABI_MAGIC);
  }
  if (table->abi_major != MLG_ABI_MAJOR || table->abi_minor > MLG_ABI_MINOR) {
    return fmt::format(
        "was built for plugin ABI {}.{}, but this program has ABI {}.{}; rebuild it with this program's SDK",
        table->abi_major, table->abi_minor, MLG_ABI_MAJOR, MLG_ABI_MINOR);
  }
  if (kind_word(table->kind) == "unknown") {
    return fmt::format("says kind {} in its table, which is none; export it with the macro of its kind",
                       table->kind);
  }
  const TableShape& shape = shape_of(table->kind);
  if (table->struct_size < shape.bytes) {
    return fmt::format(
        "has a table of {} bytes, shorter than the {} of ABI {}.{}; set struct_size to the size of the whole "
        "table",
        table->struct_size, shape.bytes, MLG_ABI_MAJOR, MLG_ABI_MINOR);
  }
  if (!table->name || !table->summary) {
    return "leaves name or summary of its table null; give both";
  }
  if ((table->key_count > 0 && !table->keys) || (table->kernel_count > 0 && !table->kernels)) {
    return "counts keys or kernels in its table but gives no list of them";
  }
  const char* member = reinterpret_cast<const char*>(table) + shape.first;
  std::istringstream names(shape.required);
  for (std::string name; names >> name; member += sizeof(AnyFunction)) {
    AnyFunction function = nullptr;
    std::memcpy(&function, member, sizeof function);
    if (!function) return fmt::format("leaves the required function '{}' of its table null", name);
  }
  return {};
}

// The table that mlg_plugin() of the library returns, checked.
const mlg_plugin_header* load_table(const fs::path& path) {
  void* library = load_library(path);
  const auto function = reinterpret_cast<mlg_plugin_function>(dlsym(library, "mlg_plugin"));
  config_error_if(
      !function,
      "the plugin file '{}' is a shared library but not a mulligan plugin: it exports no function mlg_plugin; "
      "end its source with one of the SDK's MULLIGAN_EXPORT_ macros.",
      path.string());
  const mlg_plugin_header* table = function();
  if (const std::string problem = table_problem(table); !problem.empty())
    throw config_error("the plugin file '{}' {}.", path.string(), problem);
  return table;
}

// For a plugin of this project that this build leaves out: that, and how to get it, without full stop; "" for others.
std::string why_no_plugin([[maybe_unused]] std::string_view name) {
#ifdef MULLIGAN_WITHOUT_CUDA_BACKEND
  if (name == "cuda")
    return "since this build was made without it: configure it with `cmake --preset release` and build again";
#endif
  return "";
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

std::string plugin_name_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(file_prefix) || !name.ends_with(file_suffix)) return {};
  return name.substr(file_prefix.size(), name.size() - file_prefix.size() - file_suffix.size());
}

std::vector<PluginPlace> PluginHost::search() const {
  std::vector<PluginPlace> searched = places_;
  std::ranges::for_each(searched, look_into);
  return searched;
}

std::vector<fs::path> PluginHost::find(const std::string& name, std::string_view what) const {
  std::vector<fs::path> found;
  std::vector<std::string> names;
  std::string places;
  for (const PluginPlace& place : search()) {
    for (const fs::path& file : place.files) {
      names.push_back(plugin_name_of(file));
      if (names.back() == name) found.push_back(file);
    }
    places += fmt::format("{} '{}' (from {}{}{})", places.empty() ? "" : ",", place.path.string(),
                          place.origin, place.problem.empty() ? "" : ": ", place.problem);
  }
  if (!found.empty()) return found;
  if (const std::string why = why_no_plugin(name); !why.empty())
    throw config_error("there is no {} '{}', {}.", what, name, why);
  const std::string nearest = nearest_name(name, names);
  throw config_error(
      "there is no {} '{}'{}; looked in{} for mulligan_{}.so; add its folder with --plugin-path.", what, name,
      nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
      places.empty() ? " no place at all" : places, name);
}

fs::path PluginHost::find_one(mlg_kind kind, const std::string& name) const {
  for (const PluginHandle& plugin : loaded_) {
    if (plugin->kind() == kind && plugin->name() == name) return plugin->path();
  }
  const std::vector<fs::path> found = find(name, fmt::format("{} plugin", kind_word(kind)));
  for (const fs::path& other : found) {
    if (resolved(other) == resolved(found.front()) ||
        sha256_hex_of_file(other) == sha256_hex_of_file(found.front()))
      continue;
    throw config_error(
        "two different libraries offer the {} '{}', '{}' and '{}'; remove one or say which with path = \"...\".",
        kind_word(kind), name, found.front().string(), other.string());
  }
  return resolved(found.front());
}

fs::path PluginHost::locate(mlg_kind kind, const std::string& name) const {
  try {
    return find_one(kind, name);
  } catch (const Error&) {
    return {};
  }
}

PluginHandle PluginHost::load(mlg_kind kind, const std::string& name, const fs::path& path) {
  const fs::path file = path.empty() ? find_one(kind, name) : path;
  const PluginHandle plugin = load_file(file);
  const std::string needed = name.empty() ? fmt::format("a plugin of the kind {}", kind_word(kind))
                                          : fmt::format("the {} '{}'", kind_word(kind), name);
  config_error_if(
      plugin->kind() != kind || (!name.empty() && plugin->name() != name),
      "the plugin file '{}' holds the {} '{}', but {} is needed here; correct the name or the path.",
      file.string(), kind_word(plugin->kind()), plugin->name(), needed);
  return plugin;
}

PluginHandle PluginHost::load_file(const fs::path& file) {
  const fs::path path = resolved(file);
  for (const PluginHandle& plugin : loaded_) {
    if (plugin->path() == path) return plugin;
  }
  const mlg_plugin_header* table = load_table(path);
  auto loading = std::make_shared<const Plugin>(table, path, sha256_hex_of_file(path));
  for (const PluginHandle& plugin : loaded_) {
    if (plugin->kind() != loading->kind() || plugin->name() != loading->name()) continue;
    if (plugin->sha256() == loading->sha256()) return plugin;
    throw config_error(
        "the {} '{}' of '{}' is in use already, and '{}' has the same name; rename one of the two.",
        kind_word(plugin->kind()), plugin->name(), plugin->path().string(), path.string());
  }
  loaded_.push_back(std::move(loading));
  return loaded_.back();
}

}  // namespace mulligan
