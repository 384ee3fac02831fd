// Causal attention of chosen tokens computed in fp64 on the host, forward and backward, as docs/kernels.md has it.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/first_contact/agreement.h"

namespace mulligan::first_contact {

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

// At most 48 tokens, all heads of each: the first, a middle and the last token of segments, the first and the last
// segment among them.
std::vector<std::int64_t> sampled_tokens(const HostTensor& boundaries);

ForwardAgreement sampled_forward(const AttentionTensors& tensors);
// From o and lse as they were given to the backward pass.
BackwardAgreement sampled_backward(const AttentionTensors& tensors, const AttentionGradients& gradients);

}  // namespace mulligan::first_contact
