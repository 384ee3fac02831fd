// A sweep's steps: training and test-time training of this program.
#pragma once

#include <string>
#include <vector>

#include "framework/report/console.h"
#include "framework/train/training_observer.h"
#include "tools/sweep/sweep.h"

namespace mulligan {

// A training by several ranks on this machine, as `mulligan launch` starts them.

// Begins anew in the run directory and waits for the end; what the ranks say goes to the console and to
// DIRECTORY_ranks. Throws Error with the launcher's exit code.
void train_by_ranks(const RankTraining& training, const std::vector<std::string>& plugin_paths,
                    const ConsoleOptions& console);

// What sweeps are given by other parts of the program.
struct SweepParts {
  std::vector<MakeObserver> observers;    // of each training in this process
  StoreVectors store_vectors;             // of a sweep with [vectors]
  std::vector<std::string> plugin_paths;  // those of the host (--plugin-path), for ranks
};

// `host` must outlive them.
SweepSteps sweep_steps(PluginHost& host, const SweepParts& parts = {});

// How the command packs weights; set by the part of the program that can.
StoreVectors& vector_store();

}  // namespace mulligan
