// Elements of a matmul, and causal attention of chosen tokens, forward and backward, computed in fp64 on the host (as
// docs/kernels.md has them), where the whole would cost too much.
#pragma once

#include "tests/first_contact/agreement.h"

namespace mulligan::first_contact {

// c = alpha op(a) op(b) + beta term, as matmul and matmul_add of docs/kernels.md; c is what was computed, `term` is
// read where beta is not 0.
struct MatmulTensors {
  HostTensor a, b, term, c;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
};

// The elements where 24 rows and 24 columns cross, of the first and the last pair of the batch.
Agreement sampled_matmul(const MatmulTensors& matmul);

// q, o [T, H, h]; k, v [T, K, h]; boundaries [N + 1]; lse [T, H].
struct AttentionTensors {
  HostTensor q, k, v, boundaries, o, lse;
  double scale = 1;
};
// d_o and dq as q, dk and dv as k; what lay there before is added where it is given.
struct AttentionGradients {
  HostTensor d_o, dq, dk, dv, before_dq, before_dk, before_dv;
};
struct ForwardAgreement {
  Agreement o, lse;
};
struct BackwardAgreement {
  Agreement dq, dk, dv;
};

// Of at most 48 tokens, all heads of each.
ForwardAgreement sampled_forward(const AttentionTensors& tensors);
// From o and lse as they were given to the backward pass.
BackwardAgreement sampled_backward(const AttentionTensors& tensors, const AttentionGradients& gradients);

}  // namespace mulligan::first_contact
