#include "framework/train/training_clock.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/stop_request.h"

namespace mulligan {
namespace {

constexpr std::int64_t most_under_way = 1;  // steps, while one is decided
static_assert(most_under_way + 1 < MLG_MARKS, "a mark must not be made anew before it was waited for");

std::uint32_t slot(std::int64_t step) {
  return static_cast<std::uint32_t>(step % MLG_MARKS);
}

}  // namespace

Decision agree_on(Decision decision, HostGroup& group) {
  decision.stop_signal = stop_signal();
  const int own = decision.stop_signal;
  const auto decide = [&](const std::vector<std::string>& signals) {
    for (const std::string& bytes : signals) {
      if (decision.stop_signal == 0) std::memcpy(&decision.stop_signal, bytes.data(), sizeof own);
    }
    return std::string(reinterpret_cast<const char*>(&decision), sizeof decision);
  };
  const std::string decided = group.consult({reinterpret_cast<const char*>(&own), sizeof own}, decide);
  std::memcpy(&decision, decided.data(), sizeof decision);
  return decision;
}

TrainingClock::TrainingClock(const RunConfig& config, SecondsClock budget)
    : budget_(config.train, budget ? std::move(budget) : steady_seconds) {
  if (StepSeconds::counts(config)) counted_.emplace(config);
  ledger_.enter("setup");
}

void TrainingClock::look_ahead(Decision& decision, std::int64_t steps_made) {
  if (counted_) {
    decision.budget_fraction = counted_->fraction(steps_made);
    decision.elapsed_seconds = counted_->seconds(steps_made);
    decision.end = counted_->ended(steps_made);
    return;
  }
  const std::int64_t under_way = made_ - ended_;
  decision.budget_fraction = budget_.fraction(steps_made, under_way);
  decision.elapsed_seconds = budget_.coming_step_seconds(under_way);
  decision.end = budget_.ended(decision.budget_fraction, steps_made, under_way);
}

double TrainingClock::remaining_seconds(std::int64_t steps_made) const {
  if (!counted_) return budget_.remaining_seconds(steps_made);
  if (steps_made == 0) return -1;
  const auto left = static_cast<double>(counted_->total_steps() - steps_made);
  return budget_.elapsed_seconds() / static_cast<double>(steps_made) * left;
}

void TrainingClock::step_made(Backend& backend) {
  backend.mark(slot(made_++));
  backend_ = &backend;
}

void TrainingClock::await_pace() {
  const std::int64_t left = budget_.step_seconds() > 0 ? most_under_way : 0;
  if (made_ - ended_ <= left) return;
  backend_->await(slot(made_ - 1 - left));
  book(made_ - left);
}

void TrainingClock::book(std::int64_t steps_ended) {
  const std::int64_t more = steps_ended - std::exchange(ended_, steps_ended);
  if (more == 0) return;
  budget_.mark_steps(more);
  slowest_step_seconds_ = std::max(slowest_step_seconds_, budget_.step_seconds());
}

double TrainingClock::take_slowest_step_seconds() {
  return std::exchange(slowest_step_seconds_, 0.0);
}

void TrainingClock::save_to(CheckpointProgress& progress) const {
  progress.elapsed_seconds = budget_.elapsed_seconds();
  progress.step_seconds = budget_.step_seconds();
  Ledger so_far = ledger_;
  so_far.close();
  progress.ledger_seconds = so_far.phases();
}

void TrainingClock::restore(const CheckpointProgress& progress) {
  budget_.restore(progress.elapsed_seconds, progress.step_seconds);
  ledger_.add(progress.ledger_seconds);
}

}  // namespace mulligan
