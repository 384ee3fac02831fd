#include "framework/run/plugin_lines.h"

#include "framework/core/printable.h"

namespace mulligan {

PluginLines::PluginLines(RunLog& log) : before_(set_plugin_log_sink({})) {
  set_plugin_log_sink([&log, before = before_](int level, std::string_view message) {
    if (before) before(level, message);
    if (level >= 2) log.print("warning: plugin: {}", printable(message));
    if (level == 1) log.detail(fmt::format("plugin: {}", printable(message)));
  });
}

}  // namespace mulligan
