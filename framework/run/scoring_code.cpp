#include "framework/run/scoring_code.h"

#include "framework/core/error.h"
#include "framework/plugin/build_plugins.h"

namespace mulligan {
namespace {

constexpr const char* refused = "under ledger.rules = \"strict\" the result is refused as a record.";

bool scores(const std::string& section, PluginUse use) {
  if (section == "backend") return true;
  switch (use) {
    case PluginUse::train:
      return section.starts_with("phase.") && section.ends_with(".backend");
    case PluginUse::adapt:
      return section.starts_with("ttt") || section == "communicator";
    case PluginUse::ensemble:
      return section == "ensemble";
    case PluginUse::score:
    case PluginUse::quantize:
      break;
  }
  return false;
}

}  // namespace

void require_own_scoring_code(const LoadedConfig& loaded, PluginHost& host, PluginUse use) {
  if (loaded.config.ledger.rules != LedgerRules::strict) return;
  if (!loaded.config.kernels.empty()) {
    const KernelRow& row = loaded.config.kernels.front();
    throw run_error(
        "{}: '{}' computes in the place of the kernel '{}', and counting the source tree says nothing about "
        "its code "
        "(leave the row out, or put the kernel into the backend and build it); {}",
        row.origin.text(), row.path, row.match, refused);
  }
  for (const PluginTableRef& ref : plugin_tables(loaded.config)) {
    if (!scores(ref.table->section, use)) continue;
    const std::filesystem::path library = load_plugin(host, ref.kind, *ref.table)->path();
    if (is_foreign(library)) throw run_error("{}; {}", foreign_text(library), refused);
  }
}

}  // namespace mulligan
