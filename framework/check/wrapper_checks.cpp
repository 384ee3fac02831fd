// Checks of wrapper plugins.

#include "framework/check/kind_checks.h"
#include "framework/check/poisoned_run.h"
#include "framework/graph/graph_recorder.h"
#include "framework/plugin/wrapper.h"

namespace mulligan {
namespace {

constexpr std::int64_t wrapped_steps = 4;

const std::vector<TensorType>& wrapped_types() {
  static const std::vector<TensorType> types = {TensorType(MLG_F32, {5, 7}), TensorType(MLG_BF16, {2, 9, 5}),
                                                TensorType(MLG_F32, {11})};
  return types;
}

// One parameter under one wrapper, moved between two calls as an optimiser would.
class WrappedWalk {
 public:
  WrappedWalk(Backend& backend, const Wrapper& wrapper, const TensorType& type)
      : wrapper_(wrapper), run_(backend, record(type), "check of the wrapper") {
    for (const std::string& state : states_) run_.keep(state);
    weights_ = sample(static_cast<std::size_t>(type.elements()), 51);
    run_.keep("rest", weights_);
    scalars_.resize(wrapper.scalar_count());
  }

  void step(std::int64_t number, const std::vector<float>& by, std::uint8_t poison = poison_zero) {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] += by[i];
    run_.set("master", weights_);
    const std::vector<mlg_group_rate> rates = {{"first", 0.1 / static_cast<double>(number), 0.1}};
    wrapper_.scalars({number, 0, 0.0, rates.data(), 1}, scalars_);
    if (!scalars_.empty()) run_.set("scalars", scalars_);
    run_.run(poison);
    weights_ = run_.floats("master");
  }
  void walk(std::uint8_t poison) {
    for (std::int64_t number = 1; number <= wrapped_steps; ++number)
      step(number, sample(weights_.size(), static_cast<unsigned>(60 + number), 0.1f), poison);
  }
  NamedResults everything() const {
    NamedResults all = {{"the master", weights_}, {"the weights at rest", run_.floats("rest")}};
    for (const std::string& state : states_) all.emplace_back("a state", run_.floats(state));
    return all;
  }
  PoisonedRun& memory() { return run_; }

 private:
  Graph record(const TensorType& type) {
    Graph graph;
    const mlg_wrapped_parameter parameter{"w", graph.external("master", type).id,
                                          graph.external("rest", type).id};
    Value scalars;
    if (wrapper_.scalar_count() > 0)
      scalars = graph.external("scalars", TensorType(MLG_F32, {wrapper_.scalar_count()}));
    GraphRecorder recorder(graph, "state");
    wrapper_.record(*recorder.table(), std::span(&parameter, 1), scalars.id);
    states_ = recorder.states();
    return graph;
  }

  const Wrapper& wrapper_;
  std::vector<std::string> states_;  // filled by record(), which run_ is made from
  PoisonedRun run_;
  std::vector<float> weights_, scalars_;
};

NamedResults walked(Backend& backend, const Wrapper& wrapper, const TensorType& type,
                    std::uint8_t poison = poison_zero) {
  WrappedWalk walk(backend, wrapper, type);
  walk.walk(poison);
  return walk.everything();
}

std::string states_problem(Backend& backend, const Wrapper& wrapper, const TensorType& type) {
  WrappedWalk walk(backend, wrapper, type);
  for (const std::string& state : walk.memory().kept()) {
    if (state == "rest") continue;
    if (!state.starts_with("state/w"))
      return fmt::format("the state '{}' has not the parameter's name", state);
    if (walk.memory().type(state).as(type.dtype) != type)
      return fmt::format("the state '{}' is {}, the parameter {}", state, walk.memory().type(state).text(),
                         type.text());
  }
  return {};
}

// Two parameters one by one, and as one with zeros between them.
std::string parts_problem(Backend& backend, const Wrapper& wrapper) {
  constexpr std::int64_t first = 40, gap = 24, second = 67;
  const auto of = [](std::int64_t count) { return TensorType(MLG_F32, {count}); };
  WrappedWalk a(backend, wrapper, of(first)), both(backend, wrapper, of(first + gap + second));
  for (std::int64_t number = 1; number <= wrapped_steps; ++number) {
    const std::vector<float> by = sample(first + gap + second, static_cast<unsigned>(70 + number), 0.1f);
    a.step(number, {by.begin(), by.begin() + first});
    both.step(number, by);
  }
  const auto alone = a.everything(), together = both.everything();
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const std::vector<float>& whole = together[i].second;
    std::string problem =
        first_difference("the first", alone[i].second, {whole.begin(), whole.begin() + first});
    if (!problem.empty()) return problem + ", by itself and as a part";
  }
  return {};
}

}  // namespace

void check_wrapper(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                   CheckList& list) {
  const Wrapper wrapper(plugin, config), fresh(plugin, config);
  const std::unique_ptr<Backend> backend = make(1);
  const auto add = [&](const char* what, const auto& body) {
    list.add(what, [&] { return first_problem(wrapped_types(), body); });
  };
  add("records what follows an update, with states of the parameter's shape",
      [&](const TensorType& type) { return states_problem(*backend, wrapper, type); });
  list.add("scalars() is a function of the step alone", [&] {
    const std::vector<mlg_group_rate> rates = {{"first", 0.05, 0.1}, {"second", 0.2, 0.4}};
    return scalars_problem(wrapper, fresh, [&](const Wrapper& of, std::int64_t step, std::vector<float>& to) {
      of.scalars({step, 0, step == 7 ? 0.9 : 0.3, rates.data(), 2}, to);
    });
  });
  add("weights and states are written, whatever memory held before", [&](const TensorType& type) {
    return written_problem(walked(*backend, wrapper, type, poison_nan),
                           walked(*backend, wrapper, type, poison_number));
  });
  list.add("several parameters as one are done as one by one",
           [&] { return parts_problem(*backend, wrapper); });
  if (!make.is_cpu) return;
  add_thread_check(list, make, [&](Backend& other) {
    return first_problem(wrapped_types(), [&](const TensorType& type) {
      return first_difference(walked(*backend, wrapper, type), walked(other, wrapper, type));
    });
  });
  add("no allocation on the step path", [&](const TensorType& type) {
    WrappedWalk walk(*backend, wrapper, type);
    walk.walk(poison_zero);
    std::vector<float> values(wrapper.scalar_count());
    const std::vector<mlg_group_rate> rates = {{"first", 0.05, 0.1}};
    std::string problem = allocation_problem("scalars()", [&] {
      wrapper.scalars({2, 0, 0, rates.data(), 1}, values);
    });
    if (problem.empty()) problem = kernel_allocation_problem([&] { walk.memory().run_calls_only(); });
    return problem;
  });
}

}  // namespace mulligan
