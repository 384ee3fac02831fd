// C++ side of loss.h: derive from Loss, then MULLIGAN_EXPORT_LOSS(Class, name). The class may declare as
// `static constexpr bool`:
//   fuses_softcap = true       the loss gets logits without the model's softcap;
//   reads_hidden = true        the loss gets the model's final hidden state, too, and records its gradient;
//   forward_backward = true    a Loss overrides record_forward_backward();
//   cross_entropy = false      token_loss is no cross entropy in nats (focal, margin) and is not checked against one.
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

  // Records token_loss [T] f32 (nats) from logits and targets. Puts the values that backward needs, made with
  // recorder.scratch, into forward.saved. A negative target gives loss 0.
  virtual void record_forward(Recorder& recorder, LossForward& forward) = 0;
  // Records logits_gradient = upstream[t] * d token_loss[t] / d logits[t, :], and hidden_gradient if it is given.
  virtual void record_backward(Recorder& recorder, const LossBackward& backward) = 0;
  // Only with `forward_backward`: records both.forward.token_loss and both.logits_gradient together. It takes the place of
  // the two functions above if the upstream gradient is known before the forward pass.
  virtual void record_forward_backward(Recorder&, const LossBackward&) {
    throw Error("this loss does not compute forward and backward in one");
  }
};

template <typename Class>
mlg_loss_table make_loss_table(const char* name) {
  auto table = new_table<Class, Loss, mlg_loss_table>(MLG_LOSS, name);
  if constexpr (requires { Class::fuses_softcap; }) table.fuses_softcap = Class::fuses_softcap;
  if constexpr (requires { Class::reads_hidden; }) table.reads_hidden = Class::reads_hidden;
  if constexpr (requires { Class::cross_entropy; })
    table.value = Class::cross_entropy ? MLG_LOSS_CROSS_ENTROPY : MLG_LOSS_OTHER;
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
  if constexpr (requires { requires Class::forward_backward; }) {
    table.record_forward_backward = [](void* self, const mlg_recorder* recorder,
                                       const mlg_loss_backward* both) -> mlg_error {
      return guarded([&] {
        Recorder wrapped(recorder);
        static_cast<Loss*>(self)->record_forward_backward(wrapped, *both);
      });
    };
  }
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_LOSS(Class, name) MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_loss_table<Class>(#name))
