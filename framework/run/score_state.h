// ScoreState: what an unfinished evaluation or test-time training has on disk, so that --resume continues it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/safetensors.h"
#include "framework/core/steady_time.h"
#include "framework/model/parameter_values.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// Digests of what a score is of, by name ("the weights"); two scorings with the same give the same.
using ScoreIdentity = std::vector<std::pair<std::string, std::string>>;

using PhaseSeconds = std::map<std::string, double>;

class ScoreState {
 public:
  struct Options {
    std::filesystem::path file;
    ScoreIdentity identity;
    double every_seconds = 0;  // 0: due() is never true
    bool resume = false;       // else an earlier state of another scoring goes
  };
  // Without `resume` throws config_error where a state lies there that could be continued. Throws data_error
  // where `resume` finds the state of another scoring, naming what differs, or a damaged one. FILE.seconds
  // next to it books the time of an attempt that is killed.
  explicit ScoreState(Options options);

  // What was saved; null: begin at the beginning.
  const SafetensorsFile* found() const { return found_ ? &*found_ : nullptr; }
  // Seconds of all attempts before this one, by phase.
  const PhaseSeconds& earlier_seconds() const { return earlier_; }

  // Whether it is time to save.
  bool due() const;
  // Writes the state atomically. `seconds` are those of this attempt so far.
  void save(const std::vector<StoredTensor>& tensors, std::map<std::string, std::string> metadata,
            const PhaseSeconds& seconds);
  // Books the seconds of this attempt so far, at most once a second: they count even if it is killed.
  void book(const PhaseSeconds& seconds);
  // The score is there: removes the files.
  void finish();
  // After a signal: "stopped by SIGTERM; the state is 'RUN/eval.state'; continue with the same command and
  // --resume.", or that nothing was saved yet.
  Error stopped() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::filesystem::path seconds_file() const { return options_.file.string() + ".seconds"; }
  PhaseSeconds total(const PhaseSeconds& seconds) const;
  void read_seconds();

  Options options_;
  std::string digest_;  // of the identity
  std::optional<SafetensorsFile> found_;
  PhaseSeconds earlier_;
  Clock::time_point saved_at_, booked_at_;
};

// What a score is of, as digests.
class TensorStore;

// Of the settings that move the score, the masters in `store`, the tokens that are scored, the tokenizer's
// file, and the program with all plugins that `host` has loaded. Waits for the device.
ScoreIdentity score_identity(const LoadedConfig& loaded, ScoreCommand command, const PluginHost& host,
                             const TensorStore& store, const std::vector<ParameterLayout>& layouts,
                             std::span<const std::uint16_t> tokens);

}  // namespace mulligan
