#include "kernels/lane_merge/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules lane_merge_rules{{"lane_merge_fwd", RowRule::row_wise, "iiiippppoo", "resid of both lanes"},
                                   {"lane_merge_bwd", RowRule::mixing, ""}};

Lanes lane_merge(Tape& tape, const Lanes& lanes, Value a, Value m, const LaneParameters& p, Lanes out) {
  Graph& graph = tape.graph();
  if (!out.attention) out.attention = graph.scratch(graph.type(a), "lane 0");
  if (!out.mlp) out.mlp = graph.scratch(graph.type(a), "lane 1");
  tape.call("lane_merge", {lanes.attention, lanes.mlp, a, m, p.attn_scale, p.mlp_scale, p.rho, p.post},
            {out.attention, out.mlp}, {},
            {{lanes.attention, "dlane0"},
             {lanes.mlp, "dlane1"},
             {a, "da"},
             {m, "dm"},
             {p.attn_scale},
             {p.mlp_scale},
             {p.rho},
             {p.post}});
  return out;
}

}  // namespace mulligan::ops
