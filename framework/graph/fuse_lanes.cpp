// What stands between two blocks of lanes, and after the last of them, is one call:
//
//   l0, l1 = lane_merge(...),  [m = skip_merge(l0, skip),]  n0 = residual_mix_norm(m, x0),  n1 = rms_norm(l1)
//       becomes  m, l1, n0, n1 = lane_chain(..., skip, x0), which without a skip makes l0 in the place of m
//   l0, l1 = lane_merge(...),  n = rms_norm((l0 + l1) / 2)
//       becomes  n = lane_mean_norm(...)
//
// at the place of lane_merge, which stays for values that others need. The mean is fused in models that mix x0
// in; in others both lanes share its gradient (fuse_residuals).
#include <functional>
#include <map>

#include "framework/graph/graph_rewrite.h"
#include "framework/graph/passes.h"
#include "kernels/lane_merge/op_chain.h"

namespace mulligan {
namespace {

// Arguments (docs/kernels.md).
struct Merge {
  ops::LaneBlock block;
  ops::Lanes out;
};
struct SkipOfLane {
  Value lane, skip, weight, gate, merged;
};
struct MixOfLane {
  Value x, x0, mix, y, n;
};
struct Norm {
  Value x, n;
};
struct Sum {
  Value a, b, y;
};

class LanePass {
 public:
  explicit LanePass(Tape& tape)
      : tape_(tape), access_(tape.fused().access()), graph_(tape.graph(), access_, 0) {}

  void run() {
    const auto& calls = tape_.graph().calls();
    const bool mixes = std::ranges::find(calls, "residual_mix_norm_fwd", &Call::kernel) != calls.end();
    for (std::size_t at = 0; at < calls.size(); ++at) {
      if (graph_.is(at, "lane_merge_fwd") && !chain(at) && mixes) mean(at);
    }
    tape_.rewrite(replaced_);
  }

 private:
  std::optional<std::size_t> reader(Value value, std::size_t after, std::string_view kernel) const {
    std::optional<std::size_t> at = graph_.next(value, after);
    while (at && !graph_.is(*at, kernel)) at = graph_.next(value, *at);
    return at;
  }
  // Whether no call after `at` writes the value.
  bool is_made(Value value, std::size_t at) const {
    return !value || !graph_.written_between(value, at, tape_.graph().calls().size());
  }
  bool makes(std::size_t at, Value value) const { return graph_.only_writer(value) == at; }

  bool chain(std::size_t at) {
    const auto [block, out] = named<Merge>(graph_.call(at));
    const std::optional<std::size_t> skip_at = reader(out.attention, at, "skip_merge_fwd");
    ops::LaneSkip skip;
    Value lane0 = out.attention;
    if (skip_at) {
      const auto call = named<SkipOfLane>(graph_.call(*skip_at));
      if (call.lane != lane0 || call.skip == lane0) return false;
      skip = {call.skip, call.weight, call.gate};
      lane0 = call.merged;
    }
    const auto mix_at = reader(lane0, at, "residual_mix_norm_fwd"),
               norm_at = reader(out.mlp, at, "rms_norm_fwd");
    if (!mix_at || !norm_at) return false;
    const auto mixed = named<MixOfLane>(graph_.call(*mix_at));
    const auto normed = named<Norm>(graph_.call(*norm_at));
    const double scale = graph_.attribute(*mix_at, "scale"), eps = graph_.attribute(*mix_at, "eps");
    if (mixed.x != lane0 || mixed.y || normed.x != out.mlp || graph_.attribute(*norm_at, "scale") != scale ||
        graph_.attribute(*norm_at, "eps") != eps || !makes(skip_at.value_or(at), lane0) ||
        !makes(at, out.mlp) || !makes(*mix_at, mixed.n) || !makes(*norm_at, normed.n))
      return false;
    for (const Value value : {skip.skip, skip.weight, skip.gate, mixed.x0, mixed.mix}) {
      if (!is_made(value, at)) return false;
    }
    const bool keeps_lane0 = skip_at && graph_.needed_outside(out.attention, {at, *skip_at});
    replaced_[at] = [=, this] {
      if (keeps_lane0) merge(block, {out.attention, {}});
      ops::lane_chain(tape_, block, skip, mixed.x0, mixed.mix, scale, eps,
                      {{lane0, out.mlp}, mixed.n, normed.n});
    };
    if (skip_at) replaced_[*skip_at] = nullptr;
    replaced_[*mix_at] = replaced_[*norm_at] = nullptr;
    return true;
  }

  void mean(std::size_t at) {
    const auto [block, out] = named<Merge>(graph_.call(at));
    const auto sum_at = reader(out.attention, at, "axpby");
    if (!sum_at || graph_.attribute(*sum_at, "alpha") != 0.5 || graph_.attribute(*sum_at, "beta") != 0.5)
      return;
    const auto sum = named<Sum>(graph_.call(*sum_at));
    const auto norm_at = reader(sum.y, *sum_at, "rms_norm_fwd");
    if (sum.a != out.attention || sum.b != out.mlp || !norm_at || !makes(at, sum.a) || !makes(at, sum.b) ||
        !makes(*sum_at, sum.y) || graph_.needed_outside(sum.y, {*sum_at, *norm_at}))
      return;
    const Value norm = named<Norm>(graph_.call(*norm_at)).n;
    if (!makes(*norm_at, norm)) return;
    const double scale = graph_.attribute(*norm_at, "scale"), eps = graph_.attribute(*norm_at, "eps");
    const bool keeps_lanes =
        graph_.needed_outside(out.attention, {at, *sum_at}) || graph_.needed_outside(out.mlp, {at, *sum_at});
    replaced_[at] = [=, this] {
      if (keeps_lanes) merge(block, out);
      ops::lane_mean_norm(tape_, block, scale, eps, norm);
    };
    replaced_[*sum_at] = replaced_[*norm_at] = nullptr;
  }

  void merge(const ops::LaneBlock& block, const ops::Lanes& out) {
    ops::lane_merge(tape_, block.lanes, block.a, block.m, block.parameters, out);
  }

  Tape& tape_;
  const CallAccess access_;
  const GraphRewrite graph_;
  std::map<std::size_t, std::function<void()>> replaced_;
};

}  // namespace

void fuse_lanes(Tape& tape) {
  if (tape.fused().have({"lane_chain_fwd", "lane_chain_bwd", "lane_mean_norm_fwd", "lane_mean_norm_bwd"}))
    LanePass(tape).run();
}

}  // namespace mulligan
