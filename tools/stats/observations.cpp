#include "tools/stats/observations.h"

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/report/metrics_reader.h"

namespace mulligan::stats {

std::string condition_of(const Observations& all, const Observation& value) {
  if (value.levels.empty()) return "all";
  if (value.levels.size() == 1) return value.levels.front();
  std::string label;
  for (std::size_t f = 0; f < value.levels.size(); ++f) {
    label += fmt::format("{}{}={}", f ? ", " : "", all.factors[f], value.levels[f]);
  }
  return label;
}

void require_one_window(const Observations& all) {
  for (const Observation& value : all.values) {
    if (value.window == all.values.front().window) continue;
    throw data_error(
        "{} of '{}' was taken over {}, that of '{}' over {}: figures over different windows cannot be "
        "compared; score both over the same.",
        all.metric, all.values.front().run, all.values.front().window, value.run, value.window);
  }
}

std::string observations_csv(const Observations& all) {
  std::string text = "run,seed,window";
  for (const std::string& factor : all.factors) text += ',' + csv_field(factor);
  text += ',' + csv_field(all.metric) + '\n';
  for (const Observation& value : all.values) {
    text += fmt::format("{},{},{}", csv_field(value.run), csv_field(value.seed), csv_field(value.window));
    for (const std::string& level : value.levels) text += ',' + csv_field(level);
    text += fmt::format(",{}\n", value.value);
  }
  return text;
}

}  // namespace mulligan::stats
