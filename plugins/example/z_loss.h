// Cross entropy with a z-loss (Chowdhery et al., "PaLM", 2022), which keeps the logits' scale
// in check. Per row:
//   lse = log sum exp(x);  loss = lse - x[target] + weight lse^2
//   dloss/dx = softmax(x) (1 + 2 weight lse) - onehot(target)
// A negative target: loss, lse and gradient 0; one beyond the vocabulary: NaN. f32 arithmetic, sums in a
// fixed order.
#pragma once

#include <mulligan/cpu_kernel.hpp>

namespace z_loss {

namespace sdk = mulligan::sdk;

// What both kernels of a call, the cpu's and the cuda backend's, agree on: logits [T, V] f32 or bf16, targets
// [T] i32, f32 [T] for the rest; the gradient in the dtype of the logits, and perhaps in their memory.
struct Forward {
  static constexpr const char* name = "z_loss_fwd";
  static constexpr const char* signature = "in logits, in targets, out token_loss, out lse; weight";
  enum Argument : unsigned { logits, targets, token_loss, lse };
  enum Attribute : unsigned { weight };
  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

struct Backward {
  static constexpr const char* name = "z_loss_bwd";
  static constexpr const char* signature = "in logits, in targets, in lse, in upstream, out dlogits; weight";
  enum Argument : unsigned { logits, targets, lse, upstream, dlogits };
  enum Attribute : unsigned { weight };
  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (z_loss_cuda.cpp).
extern const mlg_kernel forward_cuda, backward_cuda;

}  // namespace z_loss
