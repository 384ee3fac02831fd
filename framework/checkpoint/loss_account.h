// LossAccount: the mean training loss of a run, in a form that survives interruptions.
//
// The only denominator of a mean is the number of steps in its sum. A mean over a window names the window, [first, last)
// (docs/checkpoints.md, "Loss accounts"). A step with a skipped update (loss_scaler.h) is made, but not counted: no mean includes
// its loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mulligan {

// Sums over some steps. Losses in nats, fp64.
struct LossSums {
  double loss_sum_nats = 0;       // over tokens
  std::uint64_t tokens = 0;       // number of tokens in loss_sum_nats
  double step_loss_sum_nats = 0;  // over steps, of the step's mean token loss
  std::uint64_t steps_counted = 0;

  // Mean over steps of the steps' mean token losses. Precondition: steps_counted > 0.
  double mean_nats() const { return step_loss_sum_nats / static_cast<double>(steps_counted); }
  bool operator==(const LossSums&) const = default;
};

// The mean over the steps [first, last), counted from 0.
struct WindowMean {
  std::int64_t first = 0;
  std::int64_t last = 0;
  double mean_nats = 0;
};

class LossAccount {
 public:
  // The state that a checkpoint keeps.
  struct State {
    LossSums run;
    std::vector<std::pair<std::string, LossSums>> phases;  // by name, in order of first appearance
    std::int64_t step_first = 0;                           // first step ever counted
    std::int64_t step_last = 0;                            // one past the last step counted or skipped
    std::vector<double> ring;           // mean losses of the last steps counted, the newest last, in nats
    std::vector<std::int64_t> skipped;  // steps among those of the ring, in order, and how many in all
    std::int64_t steps_skipped = 0;
    bool operator==(const State&) const = default;
  };

  // Keeps the losses of the last `ring` (>= 1) steps.
  explicit LossAccount(std::size_t ring = 100) : capacity_(ring) {}

  // Counts step `step` (from 0; counting starts at the first call) with the summed loss of its tokens over all ranks. Precondition:
  // tokens > 0.
  void add(std::int64_t step, double loss_sum_nats, std::uint64_t tokens, const std::string& phase);

  // Step `step` was made, but its update was skipped.
  void skip(std::int64_t step);

  const LossSums& run() const { return state_.run; }
  const std::vector<std::pair<std::string, LossSums>>& phases() const { return state_.phases; }
  std::int64_t step_last() const { return state_.step_last; }

  // The mean loss of the counted steps of a window. Absent if the ring does not hold all of it, or if none of its steps was counted.
  std::optional<WindowMean> window(std::int64_t first, std::int64_t last) const;
  // The mean over the last steps, as many as the ring holds; absent before the first counted step.
  std::optional<WindowMean> last_steps() const;

  // The value that the transformers trainer reports as train_loss: the sum of the losses since this process started (since
  // restore()), divided by the number of all steps since training began. After a resume it is not a mean; it serves to compare with
  // logs made that way (metrics.hf_compat).
  double train_loss_hf_nats() const;

  // A sentence if the steps counted and skipped are not the steps made, which means that sums were lost.
  std::optional<std::string> inconsistency() const;

  const State& state() const { return state_; }
  // Continues from a saved state.
  void restore(State state);

 private:
  std::int64_t ring_first() const;
  void cut_ring();

  std::size_t capacity_;
  State state_;
  double process_start_sum_ = 0;  // step_loss_sum_nats when this process began
};

}  // namespace mulligan
