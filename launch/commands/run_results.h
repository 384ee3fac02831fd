// What commands leave in the run directory whose weights they worked on.
#pragma once

#include <filesystem>

#include "framework/eval/evaluate.h"
#include "launch/commands/weight_source.h"

namespace mulligan {

// The run directory that `path` is, or that holds it as one of its files; empty: neither.
std::filesystem::path run_directory_of(const std::filesystem::path& path);

// Adds a score to the run's evaluations.jsonl. `path` is what was scored. That it cannot is a warning on
// stderr: the score was printed.
void note_evaluation(const std::filesystem::path& run, const std::filesystem::path& path,
                     const WeightSource& source, const EvalResult& score);

// Writes the run's report.html anew; nothing where `run` is empty or holds no run. That it cannot is a
// warning on stderr: what the report is about was done.
void refresh_report(const std::filesystem::path& run);

}  // namespace mulligan
