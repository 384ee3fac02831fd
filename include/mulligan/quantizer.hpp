// C++ side of quantizer.h: derive from Quantizer, then MULLIGAN_EXPORT_QUANTIZER(Class, name).
// `static constexpr bool needs_hessian = true;` in the class asks for second moments of the layers' inputs.
#pragma once

#include <mulligan/quantizer.h>
#include <mulligan/parallel_pieces.hpp>
#include <mulligan/plugin.hpp>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// One matrix; members as in quantizer.h.
struct QuantizeRequest : mlg_quantize_request {
  explicit QuantizeRequest(const mlg_quantize_request& request) : mlg_quantize_request(request) {}

  std::span<const std::int64_t> protected_groups() const {
    return {protected_starts, static_cast<std::size_t>(protected_count)};
  }

  // Largest code: 31 for 6 bits.
  int qmax() const { return (1 << (bits - 1)) - 1; }
  // Runs body(begin, end) over pieces of [0, count); pieces may run at once. Throws what a piece threw.
  template <typename Body>
  void parallel(std::int64_t count, std::int64_t grain, Body&& body) const {
    parallel_pieces(parallel_for, count, grain, std::forward<Body>(body));
  }
};
using QuantizeResult = mlg_quantize_result;
using QuantizeTensors = std::span<const mlg_quantize_tensor>;

class Quantizer {
 public:
  virtual ~Quantizer() = default;

  // Fills result.codes, result.scales and result.squared_error.
  virtual void quantize(const QuantizeRequest& request, QuantizeResult& result) = 0;
};

// A quantiser with stages over the whole model.
class ModelQuantizer : public Quantizer {
 public:
  virtual void protect(QuantizeTensors tensors, mlg_quantize_choices& choices) = 0;
  virtual void correct(QuantizeTensors tensors, mlg_quantize_choices& choices) = 0;
  virtual double extra_bytes(QuantizeTensors tensors) = 0;
};

template <typename Class>
mlg_quantizer_table make_quantizer_table(const char* name) {
  auto table = new_table<Class, Quantizer, mlg_quantizer_table>(MLG_QUANTIZER, name);
  if constexpr (requires { Class::needs_hessian; }) table.needs_hessian = Class::needs_hessian;
  table.quantize = [](void* self, const mlg_quantize_request* request,
                      mlg_quantize_result* result) -> mlg_error {
    return guarded([&] { static_cast<Quantizer*>(self)->quantize(QuantizeRequest(*request), *result); });
  };
  if constexpr (std::is_base_of_v<ModelQuantizer, Class>) {
    static constexpr auto at = [](void* self) -> ModelQuantizer& {
      return static_cast<ModelQuantizer&>(*static_cast<Quantizer*>(self));
    };
    table.protect = [](void* self, const mlg_quantize_tensor* tensors, std::int64_t count,
                       mlg_quantize_choices* choices) -> mlg_error {
      return guarded([&] { at(self).protect({tensors, static_cast<std::size_t>(count)}, *choices); });
    };
    table.correct = [](void* self, const mlg_quantize_tensor* tensors, std::int64_t count,
                       mlg_quantize_choices* choices) -> mlg_error {
      return guarded([&] { at(self).correct({tensors, static_cast<std::size_t>(count)}, *choices); });
    };
    table.extra_bytes = [](void* self, const mlg_quantize_tensor* tensors, std::int64_t count,
                           double* bytes) -> mlg_error {
      return guarded([&] { *bytes = at(self).extra_bytes({tensors, static_cast<std::size_t>(count)}); });
    };
  }
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_QUANTIZER(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_quantizer_table<Class>(#name))
