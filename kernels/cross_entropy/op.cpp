#include "kernels/cross_entropy/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules cross_entropy_rules{{"cross_entropy_fwd", RowRule::mixing, "", "nll", "cross entropy"},
                                      {"cross_entropy_bwd", RowRule::mixing, "", "", "cross entropy"}};

void cross_entropy(Tape& tape, Value logits, Value targets, Value token_loss, Value kept_lse) {
  Graph& graph = tape.graph();
  const Value lse = kept_lse ? kept_lse : graph.scratch(graph.type(token_loss), "logsumexp");
  graph.call("cross_entropy_fwd", {logits, targets, token_loss, lse});
  tape.record({token_loss}, {logits}, [=](Backward& b) {
    b.graph().call("cross_entropy_bwd",
                   {logits, targets, lse, b.of(token_loss), b.into_storage_of(logits, logits).value});
  });
}

}  // namespace mulligan::ops
