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
  if (state_.run.steps_counted == 0 && state_.steps_skipped == 0) state_.step_first = step;
  state_.step_last = step + 1;
  count(state_.run, loss_sum_nats, tokens);
  auto found = std::ranges::find(state_.phases, phase, &std::pair<std::string, LossSums>::first);
  if (found == state_.phases.end()) found = state_.phases.insert(found, {phase, {}});
  count(found->second, loss_sum_nats, tokens);
  state_.ring.push_back(loss_sum_nats / static_cast<double>(tokens));
  cut_ring();
}

void LossAccount::skip(std::int64_t step) {
  if (state_.run.steps_counted == 0 && state_.steps_skipped == 0) state_.step_first = step;
  state_.step_last = step + 1;
  ++state_.steps_skipped;
  state_.skipped.push_back(step);
  cut_ring();
}

// The first step that the ring knows of.
std::int64_t LossAccount::ring_first() const {
  return state_.step_last - static_cast<std::int64_t>(state_.ring.size() + state_.skipped.size());
}

void LossAccount::cut_ring() {
  while (state_.ring.size() + state_.skipped.size() > capacity_) {
    if (!state_.skipped.empty() && state_.skipped.front() == ring_first()) {
      state_.skipped.erase(state_.skipped.begin());
    } else {
      state_.ring.erase(state_.ring.begin());
    }
  }
}

std::optional<WindowMean> LossAccount::window(std::int64_t first, std::int64_t last) const {
  if (first >= last || first < ring_first() || last > state_.step_last) return {};
  double sum = 0;
  std::int64_t counted = 0;
  auto loss = state_.ring.begin();
  for (std::int64_t step = ring_first(); step < last; ++step) {
    if (std::ranges::binary_search(state_.skipped, step)) continue;
    if (step >= first) sum += *loss, ++counted;
    ++loss;
  }
  if (counted == 0) return {};
  return WindowMean{first, last, sum / static_cast<double>(counted)};
}

std::optional<WindowMean> LossAccount::last_steps() const {
  return window(ring_first(), state_.step_last);
}

double LossAccount::train_loss_hf_nats() const {
  return (state_.run.step_loss_sum_nats - process_start_sum_) / static_cast<double>(state_.step_last);
}

std::optional<std::string> LossAccount::inconsistency() const {
  const auto expected =
      static_cast<std::uint64_t>(state_.step_last - state_.step_first - state_.steps_skipped);
  if (state_.run.steps_counted == expected) return {};
  return fmt::format(
      "the training loss was summed over {} steps although {} were made, [{}, {}): the sums were reset, so "
      "do not compare their mean with that of another run",
      state_.run.steps_counted, expected, state_.step_first, state_.step_last);
}

void LossAccount::restore(State state) {
  state_ = std::move(state);
  cut_ring();
  process_start_sum_ = state_.run.step_loss_sum_nats;
}

}  // namespace mulligan
