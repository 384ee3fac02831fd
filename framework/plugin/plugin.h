// Plugin: one loaded plugin library, checked.
#pragma once

#include <mulligan/abi.h>
#include <mulligan/config.h>
#include <mulligan/kernel.h>
#include <mulligan/wrapper.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mulligan {

// "optimizer", ...: an mlg_kind in messages and listings; "unknown" for other numbers.
std::string_view kind_word(std::uint32_t kind);

// Immutable. The library stays loaded until the process ends, so its pointers stay valid.
class Plugin {
 public:
  // `header` has passed every check of PluginHost; PluginHost makes these objects.
  Plugin(const mlg_plugin_header* header, std::filesystem::path path, std::string sha256);

  mlg_kind kind() const { return static_cast<mlg_kind>(header_->kind); }
  std::string name() const { return header_->name; }
  std::string summary() const { return header_->summary; }
  // Version of the plugin's state in checkpoints; resuming with another one is refused.
  std::uint32_t state_version() const { return header_->state_version; }
  std::string abi() const;                                     // "1.0"
  const std::filesystem::path& path() const { return path_; }  // canonical
  const std::string& sha256() const { return sha256_; }        // of the library file
  std::span<const mlg_key> keys() const { return {header_->keys, header_->key_count}; }
  std::span<const mlg_kernel> kernels() const { return {header_->kernels, header_->kernel_count}; }
  // "optimizer 'muon' (/path/mulligan_muon.so)", for messages.
  std::string description() const;

  // The kind's table. If the plugin has an older minor, members that it lacks are null.
  template <typename Table>
  Table table() const {
    Table copy{};
    std::memcpy(&copy, header_, std::min<std::size_t>(header_->struct_size, sizeof(Table)));
    return copy;
  }

 private:
  const mlg_plugin_header* header_;
  std::filesystem::path path_;
  std::string sha256_;
};

using PluginHandle = std::shared_ptr<const Plugin>;

}  // namespace mulligan
