#include "framework/plugin/plugin.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace mulligan {

std::string_view kind_word(std::uint32_t kind) {
  constexpr std::array<std::string_view, 11> words = {"unknown",   "backend",  "loss",      "optimizer",
                                                      "schedule",  "ttt",      "quantizer", "communicator",
                                                      "transform", "ensemble", "wrapper"};
  return words[kind < words.size() ? kind : 0];
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
