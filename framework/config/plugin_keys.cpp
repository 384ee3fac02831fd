#include "framework/config/plugin_keys.h"

#include <cstdio>
#include <cstdlib>

namespace mulligan {
namespace {

// A getter called for a key that was not declared with that type: a bug of the plugin, and no exception
// may leave here.
[[noreturn]] void abort_on_bad_getter(const Settings& settings, const char* name, ValueType type) {
  std::fprintf(stderr, "mulligan: the plugin of table '%s' declares no key '%s' of type %s.\n",
               settings.table().c_str(), name, std::string(short_name(type)).c_str());
  std::abort();
}

template <typename T>
const T& value_of(const void* self, const char* name) {
  const auto& settings = *static_cast<const Settings*>(self);
  const Setting* setting = settings.find(name);
  const ValueType type = ConfigValue(T()).type();
  if (setting == nullptr || setting->value.type() != type) abort_on_bad_getter(settings, name, type);
  return setting->value.as<T>();
}

int32_t get_bool(const void* self, const char* name) {
  return value_of<bool>(self, name);
}
const char* get_string(const void* self, const char* name) {
  return value_of<std::string>(self, name).c_str();
}
uint32_t get_float_list(const void* self, const char* name, const double** values) {
  const ConfigValue::Reals& list = value_of<ConfigValue::Reals>(self, name);
  *values = list.data();
  return static_cast<uint32_t>(list.size());
}
template <typename T>
T get_number(const void* self, const char* name) {
  return value_of<T>(self, name);
}

}  // namespace

PluginConfig::PluginConfig(std::string plugin, Settings settings)
    : plugin_(std::move(plugin)),
      settings_(std::make_unique<Settings>(std::move(settings))),
      view_{settings_.get(), get_bool, get_number<int64_t>, get_number<double>, get_string, get_float_list} {}

}  // namespace mulligan
