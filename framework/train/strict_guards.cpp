#include "framework/train/strict_guards.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "framework/core/error.h"
#include "framework/run/weights.h"

namespace mulligan {
namespace {

// 0 for none.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Distance per learning rate, and per learning rate and gradient; absent for a step that had neither.
std::optional<std::pair<double, double>> lengths(const StepMove& move) {
  if (move.lr <= 0 || move.gradient_norm <= 0 || !std::isfinite(move.gradient_norm)) return {};
  return std::pair(move.distance / move.lr, move.distance / (move.lr * move.gradient_norm));
}

}  // namespace

std::optional<LongMove> find_long_move(const std::vector<StepMove>& moves, std::size_t judged) {
  std::vector<double> per_rate, per_gradient;
  for (std::size_t step = judged; step < moves.size(); ++step) {
    const auto length = lengths(moves[step]);
    if (!length || moves[step].distance == 0) continue;  // an update that was left out
    per_rate.push_back(length->first);
    per_gradient.push_back(length->second);
  }
  const double usual = median(per_rate), usual_per_gradient = median(per_gradient);
  for (std::size_t step = 0; step < std::min(judged, moves.size()); ++step) {
    const auto length = lengths(moves[step]);
    if (!length) continue;
    const bool long_one = length->first > longest_move * usual;
    if (!long_one || length->second <= longest_move * usual_per_gradient) continue;
    return LongMove{step, usual > 0 ? length->first / usual : std::numeric_limits<double>::infinity()};
  }
  return {};
}

FirstSteps::FirstSteps(const TensorStore& store, const std::vector<PlannedParameter>& parameters)
    : parameters_(parameters) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    before_.push_back(parameters_[i].trained() ? weights_of(store, i) : std::vector<float>());
  }
}

std::vector<float> FirstSteps::weights_of(const TensorStore& store, std::size_t parameter) const {
  const std::string name = master_name(parameters_[parameter].name());
  std::vector<std::byte> bytes(static_cast<std::size_t>(store.type(name).bytes()));
  store.download(name, bytes);
  return decode_floats(bytes, parameters_[parameter].layout.master);
}

void FirstSteps::note(const TensorStore& store, const std::vector<OptimizerGroup>& groups,
                      const std::vector<double>& gradient_norms) {
  std::vector<double> squares(groups.size(), 0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].trained()) continue;
    std::vector<float> now = weights_of(store, i);
    double sum = 0;
    for (std::size_t element = 0; element < now.size(); ++element) {
      const double moved = static_cast<double>(now[element]) - static_cast<double>(before_[i][element]);
      sum += moved * moved;
    }
    squares[parameters_[i].optimizer] += sum;
    before_[i] = std::move(now);
  }
  moves_.resize(groups.size());
  groups_.clear();
  for (std::size_t group = 0; group < groups.size(); ++group) {
    groups_.push_back(groups[group].name);
    moves_[group].push_back({std::sqrt(squares[group]), groups[group].rate.lr, gradient_norms[group]});
  }
  if (++steps_ < 2 * judged) return;
  before_.clear();  // as large as the model
}

std::string FirstSteps::finding() const {
  if (steps_ < 4) return {};  // too short a run to say what its steps are like
  for (std::size_t group = 0; group < moves_.size(); ++group) {
    const auto found = find_long_move(moves_[group], std::min(judged, steps_ / 2));
    if (!found) continue;
    return fmt::format(
        "step {} moved the weights of [optimizer.{}] {:.0f} times as far as steps behind it did at the same "
        "rate, more than the {:g} times that learning explains: they were made before the training clock ran",
        found->step + 1, groups_[group], found->times, longest_move);
  }
  return {};
}

void StrictGuards::note_step(const TensorStore& store, const std::vector<OptimizerGroup>& groups,
                             const std::vector<double>& gradient_norms) {
  first_steps_->note(store, groups, gradient_norms);
  if (first_steps_->complete()) require_learned_steps();
}

void StrictGuards::require_learned_steps() const {
  const std::string finding = first_steps_ ? first_steps_->finding() : "";
  if (finding.empty()) return;
  throw run_error("{}; under ledger.rules = \"strict\" the run is refused as a record.", finding);
}

std::optional<StateSnapshot> StrictGuards::before_validation(TrainingEngine& engine) const {
  if (!strict_) return {};
  std::vector<std::string> tensors = engine.state_tensors();
  std::erase_if(tensors, [](const std::string& name) { return name.starts_with("evaluation/"); });
  return std::optional<StateSnapshot>(std::in_place, engine.store(), std::move(tensors));
}

void StrictGuards::require_unchanged(const std::optional<StateSnapshot>& state, std::int64_t steps) {
  const auto changed = state ? state->first_difference() : std::nullopt;
  if (!changed) return;
  throw run_error(
      "the validation at step {} has changed '{}', while the training clock stood; under ledger.rules = "
      "\"strict\" the run is refused as a record.",
      steps, *changed);
}

}  // namespace mulligan
