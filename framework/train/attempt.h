// Whether a training is another attempt of a job whose launcher starts it again, and goes on with what the
// attempt before it has left in the run directory.
//
// A launcher's count of restarts does not tell. Agents of torchrun do not count what ended because a machine came
// or went, and an attempt that was counted may have ended before it touched the run directory, which then holds
// somebody else's run. So the job is noted in the run directory (RunFiles::attempt).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/run/run_ranks.h"

namespace mulligan {

struct Attempt {
  std::string launcher, run_id;
  // torchrun's, whose names of jobs are used again: one of its agents lives as long as the job.
  std::vector<std::string> agents;
  std::int64_t restarts = 0;
};

// Collective. This attempt of the ranks; agents on the first rank alone.
Attempt own_attempt(RunRanks& ranks);

// The attempt that began, or last continued, the run in that directory. Nothing where no launcher did, or the
// note cannot be read.
std::optional<Attempt> noted_attempt(const std::filesystem::path& run_directory);
void note_attempt(const std::filesystem::path& run_directory, const Attempt& attempt);

// Whether `now` goes on with the run that `before` has left; then counts its restarts.
bool goes_on(const std::optional<Attempt>& before, Attempt& now);

}  // namespace mulligan
