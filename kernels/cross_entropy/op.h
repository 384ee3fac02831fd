// The plain cross entropy of every token.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// token_loss[t] = logsumexp(logits[t]) - logits[t, targets[t]] in nats, written to `token_loss` [T] f32.
// logits [T, V] after softcapping, targets [T] i32 (negative: loss 0). The gradient of the logits takes
// over their storage. logsumexp(logits[t]) is kept in `lse` [T] f32, which may be absent.
void cross_entropy(Tape& tape, Value logits, Value targets, Value token_loss, Value lse = {});

}  // namespace mulligan::ops
