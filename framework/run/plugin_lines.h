// PluginLines: what plugins say, in the log of the run that has loaded them.
#pragma once

#include <utility>

#include "framework/plugin/plugin_instance.h"
#include "framework/report/run_log.h"

namespace mulligan {

class PluginLines {
 public:
  // Until this object goes, a plugin's warning is a warning of `log`, and its information a line of the log's
  // file; each with "plugin: " before it, so that none can be taken for a line of the program's own. A sink
  // that was there before is told as well.
  explicit PluginLines(RunLog& log);
  ~PluginLines() { set_plugin_log_sink(std::move(before_)); }
  PluginLines(const PluginLines&) = delete;
  PluginLines& operator=(const PluginLines&) = delete;

 private:
  PluginLogSink before_;
};

}  // namespace mulligan
