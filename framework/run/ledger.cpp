#include "framework/run/ledger.h"

#include <algorithm>

namespace mulligan {

double& Ledger::booked(const std::string& phase) {
  const auto found = std::ranges::find(phases_, phase, &std::pair<std::string, double>::first);
  return found == phases_.end() ? phases_.emplace_back(phase, 0.0).second : found->second;
}

std::string Ledger::enter(const std::string& phase) {
  close();
  booked(phase);
  return std::exchange(current_, phase);
}

void Ledger::close() {
  const double now = clock_();
  if (!current_.empty()) booked(current_) += now - since_;
  since_ = now;
}

void Ledger::add(const std::vector<std::pair<std::string, double>>& phases) {
  for (const auto& [name, seconds] : phases) booked(name) += seconds;
}

void Ledger::rename(const std::string& from, const std::string& to) {
  close();
  const auto found = std::ranges::find(phases_, from, &std::pair<std::string, double>::first);
  if (found == phases_.end()) return;
  const double seconds = found->second;
  phases_.erase(found);
  booked(to) += seconds;
  if (current_ == from) current_ = to;
}

void Budget::resume() {
  if (running_) return;
  since_ = clock_();
  running_ = true;
}

void Budget::pause() {
  spent_ = elapsed_seconds();
  running_ = false;
}

void Budget::restore(double elapsed_seconds, double step_seconds) {
  spent_ = elapsed_seconds;
  last_mark_ = elapsed_seconds;
  step_seconds_ = step_seconds;
}

void Budget::mark_steps(std::int64_t ended) {
  if (ended <= 0) return;
  const double elapsed = elapsed_seconds();
  step_seconds_ = (elapsed - last_mark_) / static_cast<double>(ended);
  last_mark_ = elapsed;
}

double Budget::elapsed_seconds() const {
  return running_ ? spent_ + clock_() - since_ : spent_;
}

double Budget::coming_step_seconds(std::int64_t under_way) const {
  return std::max(elapsed_seconds(), last_mark_ + static_cast<double>(under_way) * step_seconds_);
}

double Budget::fraction(std::int64_t steps_made, std::int64_t under_way) const {
  const double spent = train_.budget_seconds > 0
                           ? coming_step_seconds(under_way) / (train_.budget_seconds - train_.reserve_seconds)
                           : static_cast<double>(steps_made) / static_cast<double>(train_.steps);
  return std::clamp(spent, 0.0, 1.0);
}

bool Budget::ended(double fraction, std::int64_t steps_made, std::int64_t under_way) const {
  if (train_.steps > 0 && steps_made >= train_.steps) return true;
  const bool would_pass =
      train_.budget_seconds > 0 && coming_step_seconds(under_way) + step_seconds_ > train_.budget_seconds;
  return fraction >= 1.0 || would_pass;
}

double Budget::remaining_seconds(std::int64_t steps_done) const {
  const double elapsed = elapsed_seconds();
  double remaining = -1;
  if (train_.budget_seconds > 0) {
    remaining = std::max(0.0, train_.budget_seconds - train_.reserve_seconds - elapsed);
  }
  if (train_.steps > 0 && steps_done > 0) {
    const double by_steps =
        elapsed / static_cast<double>(steps_done) * static_cast<double>(train_.steps - steps_done);
    remaining = remaining < 0 ? by_steps : std::min(remaining, by_steps);
  }
  return remaining;
}

}  // namespace mulligan
