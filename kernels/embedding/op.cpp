#include "kernels/embedding/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules embedding_rules{{"embedding_fwd", RowRule::mixing, "", "embed"},
                                  {"embedding_bwd", RowRule::mixing, ""}};

Value embedding(Tape& tape, Value ids, Value table) {
  Graph& graph = tape.graph();
  const TensorType& rows = graph.type(table);
  const Value x = graph.scratch(TensorType(rows.dtype, {graph.type(ids).dims[0], rows.dims[1]}), "embedding");
  graph.call("embedding_fwd", {ids, table, x});
  tape.record({x}, {table}, [=](Backward& b) {
    b.graph().call("embedding_bwd", {ids, b.of(x), b.into(table).value});
  });
  return x;
}

}  // namespace mulligan::ops
