#include "framework/config/plugin_keys.h"

#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace mulligan {
namespace {

// A getter called for a key that was not declared with that type: a bug of the plugin, and no exception
// may leave here.
[[noreturn]] void abort_on_bad_getter(const Settings& settings, const char* name, ValueType type) {
  std::fprintf(stderr, "mulligan: the plugin of table '%s' declares no key '%s' of type %s.\n",
               settings.table().c_str(), name, std::string(short_name(type)).c_str());
  std::abort();
}

mlg_setting get_setting(const void* self, const char* name, int32_t key_type) {
  const auto& settings = *static_cast<const Settings*>(self);
  const Setting* setting = settings.find(name);
  const auto type = static_cast<ValueType>(key_type - MLG_KEY_BOOL);
  if (setting == nullptr || setting->value.type() != type) abort_on_bad_getter(settings, name, type);
  mlg_setting found{};
  setting->value.visit([&]<typename T>([[maybe_unused]] const T& value) {
    if constexpr (std::is_integral_v<T>) found.integer = value;
    if constexpr (std::is_same_v<T, double>) found.number = value;
    if constexpr (std::is_same_v<T, std::string>) found.text = value.c_str();
    if constexpr (std::is_same_v<T, ConfigValue::Reals>) {
      found.list = value.data();
      found.count = static_cast<uint32_t>(value.size());
    }
  });
  return found;
}

}  // namespace

PluginConfig::PluginConfig(std::string plugin, Settings settings)
    : plugin_(std::move(plugin)),
      settings_(std::make_unique<Settings>(std::move(settings))),
      view_{settings_.get(), get_setting} {}

}  // namespace mulligan
