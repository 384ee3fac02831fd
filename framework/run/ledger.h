// Ledger: every second of a run booked to a phase. Budget: how much of the training budget is spent.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/train_config.h"
#include "framework/core/steady_time.h"

namespace mulligan {

using SecondsClock = std::function<double()>;  // as steady_seconds()

class Ledger {
 public:
  explicit Ledger(SecondsClock clock = steady_seconds) : clock_(std::move(clock)) {}
  // Books the time from now on to `phase`; returns the phase before ("" at the start).
  std::string enter(const std::string& phase);
  // Books the time up to now.
  void close();
  // Adds time of an earlier process of the same run.
  void add(const std::vector<std::pair<std::string, double>>& phases);
  // Books what was booked to `from`, and is not yet closed, to `to` instead.
  void rename(const std::string& from, const std::string& to);
  // In the order in which the phases were first entered.
  const std::vector<std::pair<std::string, double>>& phases() const { return phases_; }

 private:
  double& booked(const std::string& phase);

  SecondsClock clock_;
  std::vector<std::pair<std::string, double>> phases_;
  std::string current_;
  double since_ = 0;
};

// The wall clock runs between resume() and pause() only: validations do not count.
class Budget {
 public:
  explicit Budget(const TrainConfig& train, SecondsClock clock = steady_seconds)
      : train_(train), clock_(std::move(clock)) {}
  void resume();
  void pause();
  // Continues the clock of an earlier process of the same run. Precondition: not running.
  void restore(double elapsed_seconds, double step_seconds);
  double elapsed_seconds() const;
  double step_seconds() const { return step_seconds_; }  // of the last step
  // Elapsed seconds when the coming step will begin, where the device still works on so many steps that were
  // given to it: each is estimated to take as long as the last one that ended. Now, where there is none.
  double coming_step_seconds(std::int64_t under_way = 0) const;
  // Spent share then, 0 to 1: of budget_seconds - reserve_seconds, or of the steps, the ones under way among
  // `steps_made`, where there is no time budget.
  double fraction(std::int64_t steps_made, std::int64_t under_way = 0) const;
  // Reports that the device has ended a step, or several since the last report; the duration of one of them,
  // since the step before, is the estimate for the next.
  void mark_steps(std::int64_t ended = 1);
  // Whether training ends before the coming step, at this spent fraction: the budget less the reserve is
  // spent then, the step would pass the budget, or all steps are made.
  bool ended(double fraction, std::int64_t steps_made, std::int64_t under_way = 0) const;
  // Seconds until the end at the present pace; negative where that is not known yet.
  double remaining_seconds(std::int64_t steps_done) const;

 private:
  TrainConfig train_;
  SecondsClock clock_;
  double spent_ = 0;
  double since_ = 0;
  double last_mark_ = 0;     // elapsed seconds at the last mark
  double step_seconds_ = 0;  // of the last step
  bool running_ = false;
};

}  // namespace mulligan
