// C++ side of loss.h: derive from Loss, then MULLIGAN_EXPORT_LOSS(Class, name).
// `static constexpr bool fuses_softcap = true;` in the class asks for logits before the model's softcap.
#pragma once

#include <mulligan/loss.h>
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using LossForward = mlg_loss_forward;
using LossBackward = mlg_loss_backward;

class Loss {
 public:
  virtual ~Loss() = default;

  // Records token_loss [T] f32 (nats) from logits and targets; puts into forward.saved what backward needs
  // (made with recorder.scratch). A negative target gives loss 0.
  virtual void record_forward(Recorder& recorder, LossForward& forward) = 0;
  // Records logits_gradient = upstream[t] * d token_loss[t] / d logits[t, :].
  virtual void record_backward(Recorder& recorder, const LossBackward& backward) = 0;
};

template <typename Class>
mlg_loss_table make_loss_table(const char* name) {
  static_assert(std::is_base_of_v<Loss, Class>, "derive the class from mulligan::sdk::Loss");
  mlg_loss_table table{};
  table.header = make_header<Class, mlg_loss_table>(MLG_LOSS, name);
  if constexpr (requires { Class::fuses_softcap; }) table.fuses_softcap = Class::fuses_softcap;
  table.create = create_instance<Class, Loss>;
  table.destroy = destroy_instance<Loss>;
  table.record_forward = [](void* self, const mlg_recorder* recorder,
                            mlg_loss_forward* forward) -> mlg_error {
    return guarded([&] {
      Recorder wrapped(recorder);
      static_cast<Loss*>(self)->record_forward(wrapped, *forward);
    });
  };
  table.record_backward = [](void* self, const mlg_recorder* recorder,
                             const mlg_loss_backward* backward) -> mlg_error {
    return guarded([&] {
      Recorder wrapped(recorder);
      static_cast<Loss*>(self)->record_backward(wrapped, *backward);
    });
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_LOSS(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(loss, name, mulligan::sdk::make_loss_table<Class>(#name))
