// Checks of wrapper plugins.
#include <cmath>

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
  void walk(std::uint8_t poison = poison_zero) {
    for (std::int64_t number = 1; number <= wrapped_steps; ++number)
      step(number, sample(weights_.size(), static_cast<unsigned>(60 + number), 0.1f), poison);
  }
  // Masters, weights at rest and states, one after the other.
  std::vector<std::vector<float>> everything() const {
    std::vector<std::vector<float>> all = {weights_, run_.floats("rest")};
    for (const std::string& state : states_) all.push_back(run_.floats(state));
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

std::string same_everything(const WrappedWalk& a, const WrappedWalk& b) {
  const auto one = a.everything(), other = b.everything();
  for (std::size_t i = 0; i < one.size(); ++i) {
    const char* what = i == 0 ? "the master" : i == 1 ? "the weights at rest" : "a state";
    if (std::string problem = first_difference(what, one[i], other[i]); !problem.empty()) return problem;
  }
  return {};
}

std::string same_walk(Backend& one, Backend& other, const Wrapper& wrapper, const TensorType& type,
                      std::uint8_t poison = poison_zero) {
  WrappedWalk a(one, wrapper, type), b(other, wrapper, type);
  a.walk();
  b.walk(poison);
  return same_everything(a, b);
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

std::string wrapper_scalars_problem(const Wrapper& wrapper, const Wrapper& fresh) {
  std::vector<float> once(wrapper.scalar_count(), NAN), again = once;
  const std::vector<mlg_group_rate> rates = {{"first", 0.05, 0.1}, {"second", 0.2, 0.4}};
  for (const std::int64_t step : {1, 2, 1000, 100000}) {
    const mlg_wrapper_step coming{step, 0, 0.3, rates.data(), 2};
    wrapper.scalars(coming, once);
    for (std::size_t i = 0; i < once.size(); ++i) {
      if (!std::isfinite(once[i])) return fmt::format("number {} of step {} is {}", i, step, once[i]);
    }
    fresh.scalars(coming, again);
    if (std::string problem = first_difference("the numbers", once, again); !problem.empty())
      return fmt::format("{} of step {}, by what was asked before", problem, step);
    wrapper.scalars({7, 0, 0.9, rates.data(), 2}, again);
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
    std::string problem =
        first_difference("the first", alone[i], {together[i].begin(), together[i].begin() + first});
    if (!problem.empty()) return problem + ", by itself and as a part";
  }
  return {};
}

}  // namespace

void check_wrapper(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                   CheckList& list) {
  const Wrapper wrapper(plugin, config), fresh(plugin, config);
  const std::unique_ptr<Backend> backend = make(1);
  const auto add = [&](const char* what, const std::function<std::string(const TensorType&)>& body) {
    list.add(what, [&] {
      for (const TensorType& type : wrapped_types()) {
        if (const std::string problem = body(type); !problem.empty()) return problem;
      }
      return std::string();
    });
  };
  add("records what follows an update, with states of the parameter's shape",
      [&](const TensorType& type) { return states_problem(*backend, wrapper, type); });
  list.add("scalars() is a function of the step alone",
           [&] { return wrapper_scalars_problem(wrapper, fresh); });
  add("weights and states are written, whatever memory held before", [&](const TensorType& type) {
    const std::string problem = same_walk(*backend, *backend, wrapper, type, poison_nan);
    return problem.empty() ? same_walk(*backend, *backend, wrapper, type, poison_number) : problem;
  });
  list.add("several parameters as one are done as one by one",
           [&] { return parts_problem(*backend, wrapper); });
  if (!make.is_cpu) return;
  add("other numbers of threads give the same bits", [&](const TensorType& type) {
    for (const int threads : {1, 2, 3}) {
      const std::unique_ptr<Backend> other = make(threads);
      if (const std::string problem = same_walk(*backend, *other, wrapper, type); !problem.empty())
        return fmt::format("{} (1 and {} threads)", problem, threads);
    }
    return std::string();
  });
  add("no allocation on the step path", [&](const TensorType& type) {
    WrappedWalk walk(*backend, wrapper, type);
    walk.walk();
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
