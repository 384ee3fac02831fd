#include "kernels/lane_merge/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules lane_merge_rules{{"lane_merge_fwd", RowRule::row_wise, "iiiippppoo", "resid of both lanes"},
                                   {"lane_merge_bwd", RowRule::mixing, ""}};

Lanes lane_merge(Tape& tape, const Lanes& lanes, Value a, Value m, const LaneParameters& p, Lanes out) {
  Graph& graph = tape.graph();
  if (!out.attention) out.attention = graph.scratch(graph.type(a), "lane 0");
  if (!out.mlp) out.mlp = graph.scratch(graph.type(a), "lane 1");
  graph.call("lane_merge_fwd", {lanes.attention, lanes.mlp, a, m, p.attn_scale, p.mlp_scale, p.rho, p.post,
                                out.attention, out.mlp});
  tape.record({out.attention, out.mlp},
              {lanes.attention, lanes.mlp, a, m, p.attn_scale, p.mlp_scale, p.rho, p.post}, [=](Backward& b) {
                const Value d0 = b.of(out.attention);
                const Value d1 = b.of(out.mlp);
                const auto dlane0 = b.into(lanes.attention);
                const auto dlane1 = b.into(lanes.mlp);
                const auto da = b.into(a);
                const auto dm = b.into(m);
                b.graph().call(
                    "lane_merge_bwd",
                    {lanes.attention, lanes.mlp, a, m, p.attn_scale, p.mlp_scale, p.rho, p.post, d0, d1,
                     dlane0.value, dlane1.value, da.value, dm.value, b.into(p.attn_scale).value,
                     b.into(p.mlp_scale).value, b.into(p.rho).value, b.into(p.post).value},
                    {{"accumulate_dlane0", dlane0.accumulate},
                     {"accumulate_dlane1", dlane1.accumulate},
                     {"accumulate_da", da.accumulate},
                     {"accumulate_dm", dm.accumulate}});
              });
  return out;
}

}  // namespace mulligan::ops
