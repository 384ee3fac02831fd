#include "tools/report_page/run_observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/core/error.h"
#include "tools/report_page/comparison.h"

namespace mulligan::report {
namespace {

namespace fs = std::filesystem;

stats::ArenaRun arena_run(const RunRecord& run) {
  const std::string directory = run.files.directory.string();
  const auto loss = run.result.number("val_loss_nats"), steps = run.result.number("steps");
  if (!loss || !steps)
    throw data_error("'{}' has no result with a validation loss; finish it, or name another run.", directory);
  stats::ArenaRun found{directory, {}};
  for (const ValidationRecord& validation : run.metrics.validations)
    found.losses[validation.step] = validation.val_loss_nats;
  // The last one stands in a file with a digest, too.
  const auto last = static_cast<std::int64_t>(*steps);
  const auto [at, is_new] = found.losses.emplace(last, *loss);
  if (!is_new && std::abs(at->second - *loss) > 1e-6) {
    throw data_error("'{}' has the loss {:.6f} after step {}, its result {:.6f}; make the run again.",
                     run.files.metrics().string(), at->second, last, *loss);
  }
  return found;
}

// The finished runs in the folders where `runs` lie that have the same settings but for the seed.
void require_no_sibling_left_out(const std::vector<RunRecord>& runs) {
  std::set<fs::path> given, folders;
  for (const RunRecord& run : runs) {
    const fs::path whole = fs::weakly_canonical(run.files.directory);
    given.insert(whole);
    folders.insert(whole.parent_path());
  }
  for (const fs::path& folder : folders) {
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      const fs::path directory = entry->path();
      if (given.contains(fs::weakly_canonical(directory)) || !fs::exists(RunFiles{directory}.result()))
        continue;
      const RunRecord sibling = read_run(directory);
      const Comparison comparison = compare({runs.front(), sibling});
      const bool same = comparison.groups.size() == 1;
      if (!same) continue;
      throw config_error(
          "'{}' is a finished run of the same settings with run.seed = {} and is left out, but a result is of all its "
          "runs; name it, too.",
          directory.string(), sibling.setting("run.seed"));
    }
  }
}

}  // namespace

std::vector<stats::ArenaRun> arena_runs(const std::vector<RunRecord>& runs, std::vector<std::string>& notes) {
  require_no_doubts(runs);
  require_one_condition(runs);
  std::vector<stats::ArenaRun> found;
  for (const RunRecord& run : runs) {
    found.push_back(arena_run(run));
    const double ours = run.result.number("val_tokens", 0),
                 first = runs.front().result.number("val_tokens", 0);
    if (ours != first)
      throw data_error("'{}' was scored on {} targets and '{}' on {}; score both on the same.",
                       runs.front().files.directory.string(), first, run.files.directory.string(), ours);
  }
  require_no_sibling_left_out(runs);
  if (!runs.empty() && runs.front().setting("arena.track") != "modded3")
    notes.push_back(
        "the runs have no [arena] track, so nothing held them to the benchmark's model, data and batch");
  return found;
}

}  // namespace mulligan::report
