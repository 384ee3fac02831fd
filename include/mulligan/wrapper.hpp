// C++ side of wrapper.h: derive from Wrapper, then MULLIGAN_EXPORT_WRAPPER(Class, name).
#pragma once

#include <mulligan/wrapper.h>
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

#include <span>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using WrappedParameter = mlg_wrapped_parameter;
using GroupRate = mlg_group_rate;
using WrapperStep = mlg_wrapper_step;

class Wrapper {
 public:
  virtual ~Wrapper() = default;

  // How many f32 numbers scalars() supplies; constant over the object's life.
  virtual std::uint32_t scalar_count() const = 0;
  // Records the work that follows an update of all parameters, element by element. rest[i] becomes the weights that are scored
  // and saved; master[i] becomes the weights of the next gradient (wrapper.h). `scalars` is `absent` if scalar_count is 0.
  virtual void record(Recorder& recorder, std::span<const WrappedParameter> parameters, Value scalars) = 0;
  // Fills `values` (scalar_count numbers) for the coming step. On the step path: no allocation, no
  // synchronisation. A pure function of the configuration and `step`.
  virtual void scalars(const WrapperStep& step, std::span<float> values) const = 0;
};

template <typename Class>
mlg_wrapper_table make_wrapper_table(const char* name) {
  auto table = new_table<Class, Wrapper, mlg_wrapper_table>(MLG_WRAPPER, name);
  table.scalar_count = [](void* self) { return static_cast<Wrapper*>(self)->scalar_count(); };
  table.record = [](void* self, const mlg_recorder* recorder, const mlg_wrapped_parameter* parameters,
                    std::uint32_t count, mlg_value scalars) -> mlg_error {
    return guarded([&] {
      Recorder wrapped(recorder);
      static_cast<Wrapper*>(self)->record(wrapped, std::span(parameters, count), scalars);
    });
  };
  table.scalars = [](void* self, const mlg_wrapper_step* step, float* values) -> mlg_error {
    return guarded([&] {
      const auto* object = static_cast<const Wrapper*>(self);
      object->scalars(*step, std::span(values, object->scalar_count()));
    });
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_WRAPPER(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_wrapper_table<Class>(#name))
