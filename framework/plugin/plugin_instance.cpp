#include "framework/plugin/plugin_instance.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace mulligan {
namespace {

std::mutex log_mutex;
// Never destroyed: plugins may say something until the process is gone.
PluginLogSink& log_sink() {
  static auto& sink = *new PluginLogSink;
  return sink;
}

void log_line(std::int32_t level, const char* message) {
  const std::lock_guard lock(log_mutex);
  if (log_sink()) {
    log_sink()(level, message);
  } else if (level >= 2) {
    std::fprintf(stderr, "mulligan: plugin: %s\n", message);
  }
}

}  // namespace

mlg_running* plugin_running() {
  static mlg_running running{};
  return &running;
}

const mlg_host* plugin_host_services() {
  static const mlg_host services{log_line, plugin_running()};
  return &services;
}

PluginLogSink set_plugin_log_sink(PluginLogSink sink) {
  const std::lock_guard lock(log_mutex);
  return std::exchange(log_sink(), std::move(sink));
}

}  // namespace mulligan
