#include "framework/checkpoint/loss_account.h"

#include <fmt/format.h>

#include <algorithm>

namespace mulligan {
namespace {

void count(LossSums& sums, double loss_sum_nats, std::uint64_t tokens) {
  sums.loss_sum_nats += loss_sum_nats;
  sums.tokens += tokens;
  sums.step_loss_sum_nats += loss_sum_nats / static_cast<double>(tokens);
  ++sums.steps_counted;
}

}  // namespace

void LossAccount::add(std::int64_t step, double loss_sum_nats, std::uint64_t tokens,
                      const std::string& phase) {
  if (state_.run.steps_counted == 0) state_.step_first = step;
  state_.step_last = step + 1;
  count(state_.run, loss_sum_nats, tokens);
  auto found = std::ranges::find(state_.phases, phase, &std::pair<std::string, LossSums>::first);
  if (found == state_.phases.end()) found = state_.phases.insert(found, {phase, {}});
  count(found->second, loss_sum_nats, tokens);
  if (state_.ring.size() == capacity_) state_.ring.erase(state_.ring.begin());
  state_.ring.push_back(loss_sum_nats / static_cast<double>(tokens));
}

std::optional<double> LossAccount::step_loss_nats(std::int64_t step) const {
  const auto kept = static_cast<std::int64_t>(state_.ring.size());
  const std::int64_t place = step - (state_.step_last - kept);
  if (place < 0 || place >= kept) return {};
  return state_.ring[static_cast<std::size_t>(place)];
}

std::optional<WindowMean> LossAccount::window(std::int64_t first, std::int64_t last) const {
  if (first >= last || !step_loss_nats(first) || !step_loss_nats(last - 1)) return {};
  double sum = 0;
  for (std::int64_t step = first; step < last; ++step) sum += *step_loss_nats(step);
  return WindowMean{first, last, sum / static_cast<double>(last - first)};
}

std::optional<WindowMean> LossAccount::last_steps() const {
  return window(state_.step_last - static_cast<std::int64_t>(state_.ring.size()), state_.step_last);
}

double LossAccount::train_loss_hf_nats() const {
  return (state_.run.step_loss_sum_nats - process_start_sum_) / static_cast<double>(state_.step_last);
}

std::optional<std::string> LossAccount::inconsistency() const {
  const auto expected = static_cast<std::uint64_t>(state_.step_last - state_.step_first);
  if (state_.run.steps_counted == expected) return {};
  return fmt::format(
      "the training loss was summed over {} steps although {} were made, [{}, {}): the sums were reset, so "
      "do not compare their mean with that of another run",
      state_.run.steps_counted, expected, state_.step_first, state_.step_last);
}

void LossAccount::restore(State state) {
  state_ = std::move(state);
  if (state_.ring.size() > capacity_) {
    state_.ring.erase(state_.ring.begin(), state_.ring.end() - static_cast<std::ptrdiff_t>(capacity_));
  }
  process_start_sum_ = state_.run.step_loss_sum_nats;
}

}  // namespace mulligan
