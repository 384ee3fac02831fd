// Checks of what a run found while it trained and at its end (D26 to D28 and D36), and of a finished run's own files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/loss_account.h"
#include "framework/config/run_config.h"
#include "framework/report/metrics_reader.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// A validation loss in nats after so many steps, and the mean training loss of the last ones.
struct Outcome {
  std::int64_t steps = 0;
  double val_nats = 0;
  std::optional<WindowMean> last_steps;
  int vocabulary = 0;
  double floor_nats = 0;     // loss_floor() of the data
  double unigram_nats = 0;   // entropy of the data's ids
  bool of_training = false;  // val_nats is the training loss of the last steps, for want of a validation
};
// D26 and D27.
Finding judge_learning(const Outcome& outcome);
Finding judge_validation_floor(const Outcome& outcome);

// D28 of the training loss.
Finding judge_account(const LossAccount& account, std::int64_t steps);

struct Throughput {
  std::int64_t tokens = 0, steps = 0;
  double tokens_per_second = 0, train_seconds = 0;  // of the training clock
  double run_seconds = 0;                           // of the whole process
  double matrix_parameters = 0;                     // that each token meets: 6 operations each
  double peak_operations_per_second = 0;            // a generous bound of the machine; 0: not known
};
Finding judge_throughput(const Throughput& seen);  // D36

// A CPU's most: 64 fp32 or 1,024 bf16 operations per core and cycle at 6 GHz are never reached.
double cpu_peak(int threads, bool bf16);

// The rate of one optimiser at one point of a run.
struct RatePoint {
  double progress = 0;  // share of the run, 0 to 1
  double lr = 0;
  std::int64_t cycle = 0;  // of a schedule with restarts
  std::size_t phase = 0;
  double declared = 1;    // the phase's factor
  bool restarts = false;  // the phase says that its schedule begins anew or is taken up again
};

// D29 of points in the order of training, close to each other. The first twentieth of the run is warm-up.
Finding check_rates(const std::string& optimizer, const std::vector<RatePoint>& points);

// The findings that the run of `config` recorded in result.json, and D29 of the rates that it really had. With
// doctor.level = "off" the recorded findings are skipped ones. Throws config_error where the folder holds no finished
// run, data_error where a file of it is damaged.
std::vector<Finding> examine_run_directory(const std::filesystem::path& directory, const RunConfig& config);

// D29 of a run's step lines, one finding for each optimiser. `phases` are the run's.
std::vector<Finding> check_realised_rates(const MetricsHistory& history, const std::vector<Phase>& phases);

}  // namespace mulligan::doctor
