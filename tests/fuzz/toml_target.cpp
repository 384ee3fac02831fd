// Input: TOML text, then after a line ==== one --set override per line.
#include <sstream>

#include "framework/config/config_report.h"
#include "framework/config/run_config.h"
#include "tests/fuzz/fuzz_target.h"

namespace mulligan::fuzz {

void toml(std::string_view input) {
  const std::string text(take_part(input));
  std::vector<std::string> overrides;
  std::istringstream lines{std::string(input)};
  for (std::string line; std::getline(lines, line);) overrides.push_back(line);

  unless_refused([&] { return parse_saved_config(text, "stored.toml"); });
  const auto loaded =
      unless_refused([&] { return parse_run_config(text, "/nonexistent/run.toml", overrides); });
  if (!loaded) return;
  // What a run directory keeps as its configuration reads back to the same settings.
  const LoadedConfig again = parse_run_config(print_resolved(*loaded), "/nonexistent/printed.toml");
  const std::string differences = format_differences(diff_configs(*loaded, again));
  require(differences.empty(), ("the printed configuration differs: " + differences).c_str());
}

}  // namespace mulligan::fuzz
