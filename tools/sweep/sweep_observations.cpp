#include "tools/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/json_file.h"
#include "framework/report/run_directory.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path sweep_file(const fs::path& folder) {
  return folder / "sweep.json";
}

stats::Observation observation(const Json& row, const Json& seed, const std::string& metric) {
  const Json& score = seed.at("with_ttt").is_null() ? seed.at("without_ttt") : seed.at("with_ttt");
  const std::string name = row.at("name"), number = std::to_string(seed.at("seed").get<std::int64_t>());
  const Json& value = score.at(metric);
  if (!value.is_number()) {
    throw data_error("the sweep's row '{}', seed {}, has no {}; name another metric.", name, number, metric);
  }
  return {fmt::format("{} seed {}", name, number),
          {name},
          number,
          value.get<double>(),
          fmt::format("{} validation tokens", score.at("tokens").get<std::uint64_t>())};
}

}  // namespace

stats::Observations observations_of(const Json& rows, const std::string& metric) {
  stats::Observations all{metric, {"row"}, {}};
  for (const Json& row : rows) {
    for (const Json& seed : row.at("seeds")) all.values.push_back(observation(row, seed, metric));
  }
  return all;
}

bool is_sweep_folder(const fs::path& folder) {
  std::error_code failed;
  return fs::is_regular_file(sweep_file(folder), failed);
}

SweepObservations observe_sweep(const fs::path& folder, const std::string& metric) {
  if (!metric.empty() && metric != "val_bpb" && metric != "val_loss_nats") {
    throw config_error(
        "of a sweep's folder --metric is val_bpb or val_loss_nats; for '{}' name the run directories in it.",
        metric);
  }
  return read_json_object<Json>(
      sweep_file(folder),
      [&](const Json& json) {
        const std::string own = json.at("statistics").at("metric");
        return SweepObservations{observations_of(json.at("rows"), metric.empty() ? own : metric),
                                 json.at("baseline")};
      },
      "run the sweep again");
}

std::vector<std::string> runs_of_sweep(const fs::path& folder) {
  std::vector<std::string> runs;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const bool run = at->is_directory() && fs::exists(RunFiles{at->path()}.result());
    if (run) runs.push_back(at->path().string());
    if (run || at.depth() >= 2) at.disable_recursion_pending();
  }
  std::ranges::sort(runs);
  if (runs.empty()) {
    throw data_error("the sweep's folder '{}' holds no run with a result.json; run the sweep again.",
                     folder.string());
  }
  return runs;
}

void require_finished_sweep(const fs::path& folder) {
  if (is_sweep_folder(folder)) return;
  bool any = false;
  std::vector<std::string> unfinished;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool training = at.depth() == 1 && at->is_directory() && name.starts_with("seed_") &&
                          name.find_first_not_of("0123456789", 5) == std::string::npos;
    any = any || training;
    if (training && !fs::exists(RunFiles{at->path()}.result())) unfinished.push_back(at->path().string());
    if (at.depth() == 1) at.disable_recursion_pending();
  }
  if (!any) return;
  std::ranges::sort(unfinished);
  throw data_error(
      "the sweep in '{}' has not finished: sweep.json is missing, and {}; run the same mulligan sweep again, which keeps "
      "finished trainings.",
      folder.string(),
      unfinished.empty() ? "each training that has begun has a result.json"
                         : fmt::format("{} of its trainings ('{}'{} no result.json", unfinished.size(),
                                       unfinished.front(), unfinished.size() > 1 ? ", ...) have" : ") has"));
}

}  // namespace mulligan
