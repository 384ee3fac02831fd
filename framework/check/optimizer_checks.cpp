// Checks of optimiser plugins.
#include <cmath>

#include "framework/check/kind_checks.h"
#include "framework/check/poisoned_run.h"
#include "framework/graph/graph_recorder.h"
#include "framework/plugin/optimizer.h"

namespace mulligan {
namespace {

constexpr double rate = 0.02;
constexpr std::int64_t total_steps = 100;

// Parameters of odd extents; an optimiser may take matrices only.
const std::vector<TensorType>& parameter_types() {
  static const std::vector<TensorType> types = {TensorType(MLG_F32, {5, 7}), TensorType(MLG_F32, {2, 9, 5}),
                                                TensorType(MLG_F32, {11}), TensorType(MLG_F32, {67, 301})};
  return types;
}

// One parameter under one optimiser: f(w) = sum a_i (w_i - t_i)^2 / 2. The optimiser gets the gradient of f. The
// weights begin at zero.
class Descent {
 public:
  static constexpr double average_decay = 0.75;

  // With `fused` the update is recorded with all that mlg_update offers.
  Descent(Backend& backend, const Optimizer& optimizer, const TensorType& type, bool fused = false)
      : optimizer_(optimizer), update_(backend, record(type, fused), "check of the optimiser") {
    for (const std::string& state : states_) update_.keep(state);
    for (const char* kept : {"master", "average"}) {
      if (update_.has(kept)) update_.keep(kept);
    }
    const auto count = static_cast<std::size_t>(type.elements());
    target_ = sample(count, 11);
    curvature_.resize(count);
    for (std::size_t i = 0; i < count; ++i) curvature_[i] = 0.5f + static_cast<float>(i % 5) / 4.0f;
    scalars_.resize(optimizer.scalar_count());
  }

  // Lets the weights begin elsewhere, as long as the target: there are optimisers that keep their norm.
  void from_elsewhere() { update_.keep("master", sample(target_.size(), 12)); }
  double distance(const std::vector<float>& weights) const {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
      sum += 0.5 * curvature_[i] *
             std::pow(static_cast<double>(weights[i]) - static_cast<double>(target_[i]), 2);
    return sum;
  }
  void step(std::int64_t number, double lr, std::uint8_t poison = poison_zero) {
    const std::vector<float> weights = masters();
    std::vector<float> gradient(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) gradient[i] = curvature_[i] * (weights[i] - target_[i]);
    follow(gradient, {number, lr, total_steps, static_cast<double>(number - 1) / total_steps, 1, 1}, poison);
  }
  // Along a gradient from elsewhere, which a fused update scales.
  void step_along(const std::vector<float>& gradient, std::int64_t number, float scale = 1) {
    if (update_.has("scale")) update_.set("scale", std::vector<float>{scale});
    follow(gradient, {number, rate, total_steps, 0.0, 1, 1}, poison_zero);
  }
  std::vector<float> masters() const { return update_.floats("master"); }
  std::vector<float> evaluation() const {
    return update_.has("evaluation") ? update_.floats("evaluation") : masters();
  }
  NamedResults everything() const {
    NamedResults all = {{"the weights", masters()}, {"the evaluation weights", evaluation()}};
    for (const std::string& state : states_) {
      const DType dtype = update_.type(state).dtype;
      if (dtype == MLG_F32 || dtype == MLG_BF16) all.emplace_back("a state", update_.floats(state));
    }
    return all;
  }
  PoisonedRun& memory() { return update_; }

 private:
  void follow(const std::vector<float>& gradient, const mlg_step& step, std::uint8_t poison) {
    update_.set("gradient", gradient);
    optimizer_.scalars(step, scalars_);
    if (!scalars_.empty()) update_.set("scalars", scalars_);
    update_.run(poison);
  }
  Graph record(const TensorType& type, bool fused) {
    Graph graph;
    const mlg_parameter parameter{"w", graph.external("master", type).id, graph.external("gradient", type).id,
                                  1, 1};
    Value scalars;
    if (optimizer_.scalar_count() > 0) {
      scalars = graph.external("scalars", TensorType(MLG_F32, {optimizer_.scalar_count()}));
    }
    GraphRecorder recorder(graph, "state");
    if (fused) {
      const mlg_value average = graph.external("average", type).id, copy = graph.external("copy", type).id;
      const mlg_update update{graph.external("scale", TensorType(MLG_F32, {1})).id, &average, average_decay,
                              &copy};
      optimizer_.record(*recorder.table(), std::span(&parameter, 1), scalars.id, &update);
    } else {
      optimizer_.record(*recorder.table(), std::span(&parameter, 1), scalars.id);
    }
    states_ = recorder.states();
    if (optimizer_.has_evaluation_weights() && !fused) {
      const mlg_parameter read{"w", parameter.master, 0, 1, 1};
      const mlg_value evaluation = graph.external("evaluation", type).id;
      GraphRecorder again(graph, "state");
      optimizer_.record_evaluation(*again.table(), std::span(&read, 1), std::span(&evaluation, 1));
    }
    return graph;
  }

  const Optimizer& optimizer_;
  std::vector<std::string> states_;  // filled by record(), which update_ is made from
  PoisonedRun update_;
  std::vector<float> target_, curvature_, scalars_;
};

// The types of parameters that the optimiser takes; why it refuses the others is its own business.
std::vector<TensorType> accepted_types(Backend& backend, const Optimizer& optimizer) {
  std::vector<TensorType> accepted;
  std::string refusal;
  for (const TensorType& type : parameter_types()) {
    try {
      Descent(backend, optimizer, type);
      accepted.push_back(type);
    } catch (const Error& error) {
      refusal = error.what();
    }
  }
  if (accepted.empty())
    throw config_error("it takes no parameter at all; of the last one it says: {}", refusal);
  return accepted;
}

// What three steps leave.
NamedResults walked(Backend& backend, const Optimizer& optimizer, const TensorType& type,
                    std::uint8_t poison = poison_zero) {
  Descent descent(backend, optimizer, type);
  descent.from_elsewhere();
  for (std::int64_t step = 1; step <= 3; ++step) descent.step(step, rate, poison);
  return descent.everything();
}

std::string descent_problem(Backend& backend, const Optimizer& optimizer, const TensorType& type) {
  Descent descent(backend, optimizer, type);
  descent.from_elsewhere();
  const double before = descent.distance(descent.masters());
  for (std::int64_t step = 1; step <= total_steps; ++step) descent.step(step, rate);
  const double after = descent.distance(descent.evaluation());
  if (after < 0.95 * before) return {};
  return fmt::format("{} steps at rate {} take a quadratic of {} from {:.4g} to {:.4g}", total_steps, rate,
                     type.text(), before, after);
}

std::string zero_rate_problem(Backend& backend, const Optimizer& optimizer, const TensorType& type) {
  Descent descent(backend, optimizer, type);
  descent.from_elsewhere();
  for (std::int64_t step = 1; step <= 3; ++step) descent.step(step, rate);
  const std::vector<float> before = descent.masters();
  descent.step(4, 0.0);
  return first_difference("the weights", before, descent.masters());
}

// Masters and states after record() alone, against those after record() and record_evaluation().
std::string evaluation_problem(Backend& backend, const Optimizer& optimizer, const TensorType& type) {
  Graph graph;
  const mlg_parameter parameter{"w", graph.external("master", type).id, 0, 1, 1};
  const mlg_value evaluation = graph.external("evaluation", type).id;
  GraphRecorder recorder(graph, "state");
  optimizer.record_evaluation(*recorder.table(), std::span(&parameter, 1), std::span(&evaluation, 1));
  PoisonedRun run(backend, std::move(graph), "check of the evaluation weights");
  const auto count = static_cast<std::size_t>(type.elements());
  run.set("master", sample(count, 21));
  for (const std::string& state : recorder.states())
    run.set(state, sample(static_cast<std::size_t>(run.type(state).elements()), 22, 0.1f));
  run.run();
  std::string problem = first_difference("the masters", sample(count, 21), run.floats("master"));
  for (const std::string& state : recorder.states()) {
    if (problem.empty() && run.type(state).dtype == MLG_F32)
      problem =
          first_difference("a state", sample(static_cast<std::size_t>(run.type(state).elements()), 22, 0.1f),
                           run.floats(state));
  }
  return problem;
}

// record() with an update against record() of gradients that were scaled before, and averages and copies made here.
std::string fused_problem(Backend& backend, const Optimizer& optimizer, const TensorType& type) {
  constexpr float scale = 0.5f;  // exact
  Descent plain(backend, optimizer, type), fused(backend, optimizer, type, true);
  const auto count = static_cast<std::size_t>(type.elements());
  std::vector<float> average(count, 0.0f);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const std::vector<float> gradient = sample(count, static_cast<unsigned>(30 + step));
    std::vector<float> scaled = gradient;
    for (float& value : scaled) value *= scale;
    plain.step_along(scaled, step);
    fused.step_along(gradient, step, scale);
    const std::vector<float> masters = fused.masters();
    std::string problem = first_distance("the masters", plain.masters(), masters, 1e-5);
    if (!problem.empty()) return problem + ", without and with an update";
    for (std::size_t i = 0; i < count; ++i) {
      average[i] = static_cast<float>(Descent::average_decay * static_cast<double>(average[i]) +
                                      (1 - Descent::average_decay) * static_cast<double>(masters[i]));
    }
    problem = first_distance("the average", average, fused.memory().floats("average"), 1e-5);
    if (problem.empty()) problem = first_difference("the copy", masters, fused.memory().floats("copy"));
    if (!problem.empty()) return problem + ", as they should be and as record() with an update made them";
  }
  return {};
}

// Two parameters one by one, and as one flat parameter with zeros between them.
std::string joined_problem(Backend& backend, const Optimizer& optimizer) {
  constexpr std::int64_t first = 40, gap = 24, second = 67;
  Descent a(backend, optimizer, TensorType(MLG_F32, {first})),
      b(backend, optimizer, TensorType(MLG_F32, {second})),
      both(backend, optimizer, TensorType(MLG_F32, {first + gap + second}));
  for (std::int64_t step = 1; step <= 3; ++step) {
    std::vector<float> gradient = sample(first + gap + second, static_cast<unsigned>(40 + step));
    std::fill_n(gradient.begin() + first, gap, 0.0f);
    a.step_along({gradient.begin(), gradient.begin() + first}, step);
    b.step_along({gradient.begin() + first + gap, gradient.end()}, step);
    both.step_along(gradient, step);
    const std::vector<float> masters = both.masters();
    std::string problem =
        first_difference("the first", a.masters(), {masters.begin(), masters.begin() + first});
    if (problem.empty()) {
      problem = first_difference("the second", b.masters(), {masters.begin() + first + gap, masters.end()});
    }
    if (!problem.empty()) return problem + ", by itself and as a part";
  }
  return {};
}

}  // namespace

void check_optimizer(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                     CheckList& list) {
  const Optimizer optimizer(plugin, config), fresh(plugin, config);
  const std::unique_ptr<Backend> backend = make(1);
  std::vector<TensorType> types;
  list.add("records the update of a parameter", [&] {
    types = accepted_types(*backend, optimizer);
    return std::string();
  });
  const auto add = [&](const char* what, const auto& body) {
    list.add(what, [&] { return first_problem(types, body); });
  };
  list.add("scalars() is a function of the step alone", [&] {
    return scalars_problem(optimizer, fresh,
                           [](const Optimizer& of, std::int64_t step, std::vector<float>& to) {
                             of.scalars({step, step == 7 ? 0.5 : rate, 0, step == 7 ? 0.9 : 0.3, 1, 1}, to);
                           });
  });
  if (types.empty()) return;  // nothing to try the rest on
  add("weights and states are written, whatever memory held before", [&](const TensorType& type) {
    return written_problem(walked(*backend, optimizer, type, poison_nan),
                           walked(*backend, optimizer, type, poison_number));
  });
  add("descends on a quadratic",
      [&](const TensorType& type) { return descent_problem(*backend, optimizer, type); });
  add("a rate of zero changes no weight",
      [&](const TensorType& type) { return zero_rate_problem(*backend, optimizer, type); });
  if (optimizer.has_evaluation_weights()) {
    add("evaluation weights change neither masters nor states",
        [&](const TensorType& type) { return evaluation_problem(*backend, optimizer, type); });
  }
  if (optimizer.has_fused_update()) {
    add("a fused update is a plain one of scaled gradients, with average and copy",
        [&](const TensorType& type) { return fused_problem(*backend, optimizer, type); });
  }
  if (optimizer.is_elementwise()) {
    list.add("several parameters as one are updated as one by one",
             [&] { return joined_problem(*backend, optimizer); });
  }
  const auto same_run = [&](Backend& other) {
    return first_problem(types, [&](const TensorType& type) {
      return first_difference(walked(*backend, optimizer, type), walked(other, optimizer, type));
    });
  };
  if (!make.is_cpu) {
    list.add("a second run gives the same bits", [&] { return same_run(*backend); });
    return;
  }
  add_thread_check(list, make, same_run);
  add("no allocation on the step path", [&](const TensorType& type) {
    Descent descent(*backend, optimizer, type);
    descent.step(1, rate);
    std::vector<float> values(optimizer.scalar_count());
    std::string problem =
        allocation_problem("scalars()", [&] { optimizer.scalars(plain_step(2, rate), values); });
    if (problem.empty()) problem = kernel_allocation_problem([&] { descent.memory().run_calls_only(); });
    return problem;
  });
}

}  // namespace mulligan
