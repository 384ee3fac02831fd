#include "framework/plugin/plugin_instance.h"

#include <atomic>
#include <cstdio>

namespace mulligan {
namespace {

std::atomic<void (*)(int, std::string_view)> log_sink{nullptr};

void log_line(std::int32_t level, const char* message) {
  if (auto* sink = log_sink.load()) {
    sink(level, message);
  } else if (level >= 2) {
    std::fprintf(stderr, "mulligan: plugin: %s\n", message);
  }
}

}  // namespace

const mlg_host* plugin_host_services() {
  static const mlg_host services{log_line, plugin_running()};
  return &services;
}

void set_plugin_log_sink(void (*sink)(int level, std::string_view message)) {
  log_sink = sink;
}

}  // namespace mulligan
