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

// By canonical path.
std::map<std::filesystem::path, std::string>& loaded() {
  static std::map<std::filesystem::path, std::string> digests;
  return digests;
}

std::string digest_of(const std::filesystem::path& library) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::weakly_canonical(library, failed);
  const auto note = loaded().find(failed ? library : path);
  return note != loaded().end() ? note->second : ElfFile(library).loaded_sha256();
}

}  // namespace

void set_build_plugins(std::map<std::string, std::string> name_by_loaded_sha256) {
  known() = std::move(name_by_loaded_sha256);
}

void note_loaded_plugin(const std::filesystem::path& library, const std::string& loaded_sha256) {
  loaded()[library] = loaded_sha256;
}

std::string build_plugin_name(const std::filesystem::path& library) {
  if (!known()) return {};
  try {
    const auto found = known()->find(digest_of(library));
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
      "'{}' is not a library that this program was built with, so counting the source "
      "tree says nothing about its code (put its source into the tree and build that)",
      library.string());
}

}  // namespace mulligan
