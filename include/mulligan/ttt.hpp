// C++ side of ttt.h: derive from Adapters (per-document adapters at taps) or from BaseUpdate (training the
// whole model between batches), then MULLIGAN_EXPORT_TTT(Class, name).
#pragma once

#include <mulligan/ttt.h>
#include <mulligan/plugin.hpp>
#include <mulligan/recorder.hpp>

#include <type_traits>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using Tap = mlg_tap;
using Adapter = mlg_adapter;
using TapForward = mlg_tap_forward;
using TapBackward = mlg_tap_backward;
using Chunk = mlg_ttt_chunk;
using Step = mlg_ttt_step;
using BaseNumbers = mlg_base_update;

// `value` [B*R, features], a row for each token, as [B, R, features]: a matrix for each of the tap's B documents.
inline Value document_rows(Recorder& recorder, Value value, const Tap& tap, std::int64_t features) {
  const auto dtype = static_cast<mlg_dtype>(recorder.describe(value).dtype);
  return recorder.view(value, 0, shape(dtype, {tap.documents, tap.tokens, features}));
}

// Records c = alpha * op(a) op(b) + beta * c, one matmul per document; op transposes where asked. All have rank 3.
inline void document_matmul(Recorder& recorder, Value a, Value b, Value c, bool transpose_a, bool transpose_b,
                            double beta, double alpha = 1) {
  recorder.launch(
      "matmul", {a, b, c},
      {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}, {"beta", beta}});
}

// Adapters per document. The host keeps their values and reveals no token.
class Adapters {
 public:
  virtual ~Adapters() = default;

  // The adapters of a tap, at most MLG_TAP_ADAPTERS; none: the tap does not change. A pure function of the configuration and
  // the tap.
  virtual std::vector<Adapter> declare(const Tap& tap) const = 0;
  // Records the addition to forward.output, and puts the values that backward needs into forward.saved.
  virtual void record_forward(Recorder& recorder, const Tap& tap, TapForward& forward) const = 0;
  // Records backward.gradients (written) and the contribution to backward.input_gradient.
  virtual void record_backward(Recorder& recorder, const Tap& tap, const TapBackward& backward) const = 0;
  // Chooses how the adapters learn from a booked chunk, or what a batch inherits (booked.chunk = -1). Pure, without
  // allocation. Default: one gradient step on each chunk, and every batch begins with new adapters.
  virtual void plan(const Chunk& /*booked*/, Step& /*step*/) const {}
};

class BaseUpdate {
 public:
  virtual ~BaseUpdate() = default;

  virtual BaseNumbers numbers() const = 0;
  // Learning rate of chunk `index` of `count`; the last chunk is never trained. Pure.
  virtual double rate(std::int64_t index, std::int64_t count) const = 0;
};

template <typename Class>
mlg_ttt_table make_ttt_table(const char* name) {
  constexpr bool adapts = std::is_base_of_v<Adapters, Class>;
  static_assert(adapts != std::is_base_of_v<BaseUpdate, Class>,
                "derive the class from mulligan::sdk::Adapters or from mulligan::sdk::BaseUpdate");
  using Base = std::conditional_t<adapts, Adapters, BaseUpdate>;
  auto table = new_table<Class, Base, mlg_ttt_table>(MLG_TTT, name);
  if constexpr (adapts) {
    table.declare = [](void* self, const mlg_tap* tap, mlg_adapter* out, std::uint32_t* count) -> mlg_error {
      return guarded([&] {
        const std::vector<Adapter> adapters = static_cast<const Adapters*>(self)->declare(*tap);
        if (adapters.size() > MLG_TAP_ADAPTERS) throw Error("a tap has at most four adapters; declare fewer");
        *count = static_cast<std::uint32_t>(adapters.size());
        for (const Adapter& adapter : adapters) *out++ = adapter;
      });
    };
    table.record_forward = [](void* self, const mlg_recorder* recorder, const mlg_tap* tap,
                              mlg_tap_forward* forward) -> mlg_error {
      return guarded([&] {
        Recorder wrapped(recorder);
        static_cast<const Adapters*>(self)->record_forward(wrapped, *tap, *forward);
      });
    };
    table.record_backward = [](void* self, const mlg_recorder* recorder, const mlg_tap* tap,
                               const mlg_tap_backward* backward) -> mlg_error {
      return guarded([&] {
        Recorder wrapped(recorder);
        static_cast<const Adapters*>(self)->record_backward(wrapped, *tap, *backward);
      });
    };
    table.plan = [](void* self, const mlg_ttt_chunk* booked, mlg_ttt_step* out) -> mlg_error {
      return guarded([&] { static_cast<const Adapters*>(self)->plan(*booked, *out); });
    };
  } else {
    table.base_update = [](void* self, mlg_base_update* out) -> mlg_error {
      return guarded([&] { *out = static_cast<const BaseUpdate*>(self)->numbers(); });
    };
    table.base_rate = [](void* self, std::int64_t index, std::int64_t count, double* lr) -> mlg_error {
      return guarded([&] { *lr = static_cast<const BaseUpdate*>(self)->rate(index, count); });
    };
  }
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_TTT(Class, name) MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_ttt_table<Class>(#name))
