// C++ side of optimizer.h. A whole optimiser is one file:
//
//   struct Config { double momentum = 0.9; };
//   class Sgd : public mulligan::sdk::Optimizer { … };
//   MULLIGAN_EXPORT_OPTIMIZER(Sgd, sgd);
#pragma once

#include <mulligan/optimizer.h>
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

#include <span>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using Parameter = mlg_parameter;
using Update = mlg_update;
using Step = mlg_step;

// One object updates one group of parameters.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // How many f32 numbers scalars() supplies; constant over the object's life.
  virtual std::uint32_t scalar_count() const = 0;
  // Records one update of all parameters. `scalars` is an f32 [scalar_count] value (`absent` if that is 0); at each replay it
  // holds what scalars() wrote. Everything that changes from step to step goes through it. The recorded calls depend on the
  // configuration and the shapes only. A class with record_update() may leave this one out.
  virtual void record(Recorder& recorder, std::span<const Parameter> parameters, Value scalars) {
    record_update(recorder, parameters, scalars, {});
  }
  // Fills `values` (scalar_count numbers) for the coming step. On the step path: no
  // allocation, no synchronisation. A pure function of the configuration and `step`, so that a
  // resumed run continues exactly.
  virtual void scalars(const Step& step, std::span<float> values) const = 0;
  // Only with `static constexpr bool evaluation_weights = true;`: records the weights that are scored and saved in place of
  // the masters, evaluation[i] for parameters[i] (optimizer.h).
  virtual void record_evaluation(Recorder&, std::span<const Parameter>, std::span<const Value>) {
    throw Error("this optimiser has no evaluation weights");
  }
  // Only with `static constexpr bool fused_update = true;`: record() and the work of `update` in the same pass over memory
  // (optimizer.h). A class with `static constexpr bool elementwise = true;` may get several parameters that are consecutive
  // in memory as one.
  virtual void record_update(Recorder&, std::span<const Parameter>, Value /*scalars*/, const Update&) {
    throw Error("this optimiser has neither record() nor record_update()");
  }
};

template <typename Class>
mlg_optimizer_table make_optimizer_table(const char* name) {
  auto table = new_table<Class, Optimizer, mlg_optimizer_table>(MLG_OPTIMIZER, name);
  table.scalar_count = [](void* self) { return static_cast<Optimizer*>(self)->scalar_count(); };
  table.record = [](void* self, const mlg_recorder* recorder, const mlg_parameter* parameters,
                    std::uint32_t count, mlg_value scalars, const mlg_update* update) -> mlg_error {
    return guarded([&] {
      Recorder wrapped(recorder);
      auto* object = static_cast<Optimizer*>(self);
      if (update) return object->record_update(wrapped, std::span(parameters, count), scalars, *update);
      object->record(wrapped, std::span(parameters, count), scalars);
    });
  };
  table.scalars = [](void* self, const mlg_step* step, float* values) -> mlg_error {
    return guarded([&] {
      const auto* object = static_cast<const Optimizer*>(self);
      object->scalars(*step, std::span(values, object->scalar_count()));
    });
  };
  if constexpr (requires { requires Class::evaluation_weights; }) {
    table.record_evaluation = [](void* self, const mlg_recorder* recorder, const mlg_parameter* parameters,
                                 std::uint32_t count, const mlg_value* evaluation) -> mlg_error {
      return guarded([&] {
        Recorder wrapped(recorder);
        static_cast<Optimizer*>(self)->record_evaluation(wrapped, std::span(parameters, count),
                                                         std::span(evaluation, count));
      });
    };
  }
  if constexpr (requires { Class::fused_update; }) table.fused_update = Class::fused_update;
  if constexpr (requires { Class::elementwise; }) table.elementwise = Class::elementwise;
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_OPTIMIZER(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_optimizer_table<Class>(#name))
