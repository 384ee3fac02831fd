// The calls of a configuration's training step, each distinct one once on the configured backend, against a reference.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/core/steady_time.h"
#include "framework/data/prefetcher.h"
#include "framework/ranks/communicator.h"
#include "framework/step/engine.h"
#include "tests/first_contact/compared_call.h"

namespace mulligan::first_contact {

// A call as people and the next attempt know it.
struct CallName {
  int number = 0;  // of the distinct calls, from 1, in the order in which a step runs them
  std::string program, kernel, shapes, dtypes;
  bool library = false;  // matmul or attention of a vendor's library
};

struct WalkOptions {
  double seconds = 130;      // from the start; calls that come later only run
  std::set<int> taken_over;  // numbers of calls that the reference computes in the device's place
};

// Called before a call, so that a process that dies has named it, and after it.
struct WalkListener {
  std::function<void(const CallName&)> begins;
  std::function<void(const CallName&, const CallReport&)> ends;
};

class StepWalk {
 public:
  // `loaded` has its plugins resolved; all references must outlive this object. Throws Error.
  StepWalk(const LoadedConfig& loaded, PluginHost& host);

  // All phases of the run on [backend]. False where the device stopped: no later call was tried.
  bool run(const WalkOptions& options, const WalkListener& listener);

  Backend& device() { return *plugins_.backend; }
  // How many measurements the calls' matmuls take their algorithms from.
  std::int64_t measurements() const;

 private:
  bool run_program(Program& program, const std::string& role, const WalkOptions& options,
                   const WalkListener& listener);
  bool run_phase(std::size_t phase, const WalkOptions& options, const WalkListener& listener);

  const RunConfig& config_;
  SteadyTime start_ = std::chrono::steady_clock::now();
  RunPlugins plugins_, reference_;
  std::vector<PlannedParameter> parameters_;
  OptimizerGroups groups_;
  std::unique_ptr<Communicator> communicator_;
  TrainingEngine engine_;
  DeviceBuffer arena_, workspace_, nan_bytes_;
  std::map<std::string, int> known_;  // calls by what tells them apart
  std::set<int> broken_;              // of those that the device failed at: the reference computes later ones
  std::int64_t step_ = 0;
};

}  // namespace mulligan::first_contact
