#include "framework/plugin/plugin.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace mulligan {
namespace {

constexpr std::array<std::pair<PluginKind, std::string_view>, 10> kWords{{
    {PluginKind::backend, "backend"},
    {PluginKind::loss, "loss"},
    {PluginKind::optimizer, "optimizer"},
    {PluginKind::schedule, "schedule"},
    {PluginKind::ttt, "ttt"},
    {PluginKind::quantizer, "quantizer"},
    {PluginKind::communicator, "communicator"},
    {PluginKind::transform, "transform"},
    {PluginKind::ensemble, "ensemble"},
    {PluginKind::wrapper, "wrapper"},
}};

}  // namespace

std::string_view kind_word(PluginKind kind) {
  for (const auto& [value, word] : kWords) {
    if (value == kind) return word;
  }
  return "unknown";
}

Plugin::Plugin(const mlg_plugin_header* header, std::filesystem::path path, std::string sha256)
    : header_(header), path_(std::move(path)), sha256_(std::move(sha256)) {}

std::string Plugin::abi() const {
  return fmt::format("{}.{}", header_->abi_major, header_->abi_minor);
}

std::string Plugin::description() const {
  return fmt::format("{} '{}' ({})", kind_word(kind()), name(), path_.string());
}

}  // namespace mulligan
