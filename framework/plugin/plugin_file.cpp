#include "framework/plugin/plugin_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace mulligan {

std::optional<PluginMarker> parse_marker(std::string_view symbol) {
  constexpr std::string_view kPrefix = "mlg_abi_";
  if (!symbol.starts_with(kPrefix)) return std::nullopt;
  PluginMarker marker;
  marker.symbol = symbol;
  std::string_view rest = symbol.substr(kPrefix.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), marker.abi_major);
  if (error != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (!rest.starts_with('_')) return std::nullopt;
  rest.remove_prefix(1);
  const std::size_t bar = rest.find('_');
  if (bar == rest.npos || bar + 1 == rest.size()) return std::nullopt;
  const auto kind = kind_of_word(rest.substr(0, bar));
  if (!kind) return std::nullopt;
  marker.kind = *kind;
  marker.name = rest.substr(bar + 1);
  return marker;
}

PluginFile inspect_plugin_file(const std::filesystem::path& path) {
  PluginFile file;
  file.path = path;
  std::vector<std::string> symbols;
  try {
    symbols = exported_symbols(path);
  } catch (const std::runtime_error& reason) {
    file.problem = reason.what();
    return file;
  }
  for (const std::string& symbol : symbols) {
    auto marker = parse_marker(symbol);
    if (!marker) continue;
    if (file.marker) {
      file.problem = fmt::format("carries two ABI markers, {} and {}; put one plugin into each library",
                                 file.marker->symbol, symbol);
      file.marker.reset();
      return file;
    }
    file.marker = std::move(marker);
  }
  if (!file.marker) {
    file.problem =
        "is a shared library but not a mulligan plugin: it exports no symbol mlg_abi_<major>_<kind>_<name>; "
        "end its source with one of the SDK's MULLIGAN_EXPORT_ macros";
  } else if (file.marker->abi_major != MLG_ABI_MAJOR) {
    file.problem = fmt::format(
        "was built for plugin ABI {}, but this program has ABI {}; rebuild it with this program's SDK",
        file.marker->abi_major, MLG_ABI_MAJOR);
  } else if (std::ranges::find(symbols, "mlg_plugin") == symbols.end()) {
    file.problem = fmt::format(
        "exports the marker {} but not the function mlg_plugin; export both, as the SDK's macros do",
        file.marker->symbol);
  }
  return file;
}

std::string why_no_plugin([[maybe_unused]] std::string_view name) {
#ifdef MULLIGAN_WITHOUT_CUDA_BACKEND
  if (name == "cuda")
    return "since this build was made without it: configure it with `cmake --preset release` and build again";
#endif
  return "";
}

}  // namespace mulligan
