// Cross entropy of softcapped logits, fused: neither the capped logits nor the probabilities are ever stored.
//
// Per row, with cap c > 0 and s = sigmoid(2x/c):
//   z = 2 c s = c tanh(x/c) + c;  lse = logsumexp(z);  loss = lse - z[target]
//   dloss/dx = (exp(z - lse) - onehot) * 4 s (1 - s)
// (public source: openai/parameter-golf, pull request 1886). The shift by c cancels in loss and gradient but
// is part of the reported lse. c = 0: no cap, z = x, slope 1. A negative target gives loss 0, lse 0 and
// gradient 0; a target beyond the vocabulary gives a NaN loss and gradient. f32 arithmetic; one row is always
// summed in the same order.
#pragma once

#include <mulligan/cpu_kernel.hpp>

namespace mulligan::losses {

struct SoftcapCeInputs {
  enum Argument : std::uint32_t { logits, targets };
  enum Attribute : std::uint32_t { softcap };
};

// logits [T,V] f32 or bf16, targets [T] i32 -> token_loss [T] f32 (nats), lse [T] f32. Reads the logits once.
struct SoftcapCeForward : SoftcapCeInputs {
  static constexpr const char* name = "softcap_ce_fwd";
  static constexpr const char* signature = "in logits, in targets, out token_loss, out lse; softcap";
  enum Output : std::uint32_t { token_loss = 2, lse };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// dlogits = upstream[t] * d token_loss[t] / d logits, in the dtype of the logits; may share their memory.
struct SoftcapCeBackward : SoftcapCeInputs {
  static constexpr const char* name = "softcap_ce_bwd";
  static constexpr const char* signature = "in logits, in targets, in lse, in upstream, out dlogits; softcap";
  enum Gradient : std::uint32_t { lse = 2, upstream, dlogits };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// Both in one, where upstream is known beforehand: each logit is capped and exponentiated once. dlogits may
// share the memory of the logits.
struct SoftcapCeBoth : SoftcapCeInputs {
  static constexpr const char* name = "softcap_ce_fwd_bwd";
  static constexpr const char* signature =
      "in logits, in targets, in upstream, out token_loss, out dlogits; softcap";
  enum Result : std::uint32_t { upstream = 2, token_loss, dlogits };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (softcap_ce.cu).
extern const mlg_kernel softcap_ce_fwd_cuda;
extern const mlg_kernel softcap_ce_bwd_cuda;
extern const mlg_kernel softcap_ce_fwd_bwd_cuda;

}  // namespace mulligan::losses
