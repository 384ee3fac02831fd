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

struct CheckArguments {
  std::string plugin;
  CheckBackend backend;
  std::vector<std::string> places, overrides;
};

CheckArguments read_arguments(int argc, char** argv) {
  CheckArguments arguments;
  if (argc < 3) throw config_error("mulligan_plugin_check is started by mulligan plugins check; run that.");
  arguments.plugin = argv[1];
  arguments.backend.plugin = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view kind = word.substr(0, word.find('='));
    std::vector<std::string>& list = kind == "path"  ? arguments.places
                                     : kind == "set" ? arguments.overrides
                                                     : arguments.backend.overrides;
    list.emplace_back(word.substr(kind.size() + 1));
  }
  return arguments;
}

// One line per check; bad_configuration where any fails.
void check(const CheckArguments& arguments) {
  PluginHost host(plugin_places(arguments.places));
  std::size_t failed = 0, all = 0;
  for (const PluginHandle& plugin : plugins_to_check(host, arguments.plugin)) {
    fmt::print("{}\n", plugin->description());
    std::fflush(stdout);  // said before a plugin crashes
    const CheckList list = check_plugin(host, plugin, arguments.overrides, arguments.backend);
    for (const CheckLine& line : list.lines()) {
      ++all;
      if (!line.problem.empty()) ++failed;
      fmt::print("  {}  {}{}{}\n", line.problem.empty() ? "ok  " : "FAIL", line.what,
                 line.problem.empty() ? "" : ": ", line.problem);
    }
  }
  config_error_if(failed > 0,
                  "{} of {} checks of '{}' failed; docs/plugins.md says what each kind of plugin promises.",
                  failed, all, arguments.plugin);
}

}  // namespace
}  // namespace mulligan

int main(int argc, char** argv) {
  using namespace mulligan;
  return run_process([&] {
    try {
      check(read_arguments(argc, argv));
      return ExitCode::ok;
    } catch (const Error& error) {
      print_error(printable(error.what()));
      return error.code();
    }
  });
}
