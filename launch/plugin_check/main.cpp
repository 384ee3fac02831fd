// mulligan_plugin_check PLUGIN BACKEND [path=PATH | set=KEY=VALUE | set_backend=KEY=VALUE]...: the checks of
// `mulligan plugins check`, which starts it.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "framework/check/plugin_check.h"
#include "framework/core/printable.h"
#include "framework/report/console.h"
#include "launch/start_process.h"

namespace mulligan {
namespace {

// One line per check; bad_configuration where any fails.
void check(int argc, char** argv) {
  config_error_if(argc < 3, "mulligan_plugin_check is started by mulligan plugins check; run that.");
  CheckBackend backend{argv[2]};
  std::vector<std::string> places, overrides;
  for (int i = 3; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view kind = word.substr(0, word.find('='));
    std::vector<std::string>& list = kind == "path" ? places : kind == "set" ? overrides : backend.overrides;
    list.emplace_back(word.substr(kind.size() + 1));
  }
  PluginHost host(plugin_places(places));
  std::size_t failed = 0, all = 0;
  for (const PluginHandle& plugin : plugins_to_check(host, argv[1])) {
    fmt::print("{}\n", plugin->description());
    std::fflush(stdout);  // said before a plugin crashes
    const CheckList list = check_plugin(host, plugin, overrides, backend);
    for (const CheckLine& line : list.lines()) {
      ++all;
      if (!line.problem.empty()) ++failed;
      fmt::print("  {}  {}{}{}\n", line.problem.empty() ? "ok  " : "FAIL", line.what,
                 line.problem.empty() ? "" : ": ", line.problem);
    }
  }
  config_error_if(failed > 0,
                  "{} of {} checks of '{}' failed; docs/plugins.md says what each kind of plugin promises.",
                  failed, all, argv[1]);
}

}  // namespace
}  // namespace mulligan

int main(int argc, char** argv) {
  using namespace mulligan;
  return run_process([&] {
    try {
      check(argc, argv);
      return ExitCode::ok;
    } catch (const Error& error) {
      print_error(printable(error.what()));
      return error.code();
    }
  });
}
