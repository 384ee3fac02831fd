// C++ side of quantizer.h: derive from Quantizer, then MULLIGAN_EXPORT_QUANTIZER(Class, name).
// `static constexpr bool needs_hessian = true;` in the class asks for second moments of the layers' inputs.
#pragma once

#include <mulligan/quantizer.h>
#include <mulligan/plugin.hpp>

#include <exception>
#include <mutex>
#include <type_traits>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// One matrix; members as in quantizer.h.
struct QuantizeRequest : mlg_quantize_request {
  explicit QuantizeRequest(const mlg_quantize_request& request) : mlg_quantize_request(request) {}

  // Largest code: 31 for 6 bits.
  int qmax() const { return (1 << (bits - 1)) - 1; }
  // Runs body(begin, end) over pieces of [0, count); pieces may run at once. Throws what a piece threw.
  template <typename Body>
  void parallel(std::int64_t count, std::int64_t grain, Body&& body) const {
    struct Context {
      std::remove_reference_t<Body>& body;
      std::mutex mutex;
      std::exception_ptr failure;
    } context{body, {}, {}};
    const auto piece = [](void* self, std::int64_t begin, std::int64_t end) {
      auto& shared = *static_cast<Context*>(self);
      try {
        shared.body(begin, end);
      } catch (...) {
        const std::lock_guard lock(shared.mutex);
        if (!shared.failure) shared.failure = std::current_exception();
      }
    };
    parallel_for(count, grain, piece, &context);
    if (context.failure) std::rethrow_exception(context.failure);
  }
};
using QuantizeResult = mlg_quantize_result;

class Quantizer {
 public:
  virtual ~Quantizer() = default;

  // Fills result.codes, result.scales and result.squared_error.
  virtual void quantize(const QuantizeRequest& request, QuantizeResult& result) = 0;
};

template <typename Class>
mlg_quantizer_table make_quantizer_table(const char* name) {
  static_assert(std::is_base_of_v<Quantizer, Class>, "derive the class from mulligan::sdk::Quantizer");
  mlg_quantizer_table table{};
  table.header = make_header<Class, mlg_quantizer_table>(MLG_QUANTIZER, name);
  if constexpr (requires { Class::needs_hessian; }) table.needs_hessian = Class::needs_hessian;
  table.create = create_instance<Class, Quantizer>;
  table.destroy = destroy_instance<Quantizer>;
  table.quantize = [](void* self, const mlg_quantize_request* request,
                      mlg_quantize_result* result) -> mlg_error {
    return guarded([&] { static_cast<Quantizer*>(self)->quantize(QuantizeRequest(*request), *result); });
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_QUANTIZER(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(quantizer, name, mulligan::sdk::make_quantizer_table<Class>(#name))
