#include "framework/plugin/build_plugins.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "framework/core/elf_file.h"

namespace mulligan {
namespace {

std::optional<std::map<std::string, std::string>>& known() {
  static std::optional<std::map<std::string, std::string>> names;
  return names;
}

}  // namespace

void set_build_plugins(std::map<std::string, std::string> name_by_loaded_sha256) {
  known() = std::move(name_by_loaded_sha256);
}

std::string build_plugin_name(const std::filesystem::path& library) {
  if (!known()) return {};
  try {
    const auto found = known()->find(ElfFile(library).loaded_sha256());
    return found == known()->end() ? std::string() : found->second;
  } catch (const std::runtime_error&) {
    return {};
  }
}

bool is_foreign(const std::filesystem::path& library) {
  return known() && build_plugin_name(library).empty();
}

std::string foreign_text(const std::filesystem::path& library) {
  return fmt::format(
      "'{}' is no library that this program was built with, so counting the source "
      "tree says nothing about its code (put its source into the tree and build that)",
      library.string());
}

}  // namespace mulligan
