// What stands between two blocks becomes one call:
//
//   forward    scaled_add_norm_fwd without a norm -> [skip_merge_fwd ->] residual_mix_norm_fwd of its result
//   backward   residual_mix_norm_bwd -> [skip_merge_bwd ->] scaled_add_norm_bwd of its gradient
//
// each become a call of residual_chain (docs/kernels.md), at the place of the last of them. (An addition
// without a scale has no call of its own backward: its terms share its gradient.) The sum and what
// the skip made of it are then written only if another call reads them; the fused backward call computes them
// again from what scaled_add_norm was given. The gradient of the mean of two lanes (rms_norm_bwd -> two axpby
// of its gradient by the same power of two -> lane_merge_bwd) is one tensor for both.
#include <cmath>

#include "framework/graph/graph_rewrite.h"
#include "framework/graph/passes.h"
#include "framework/graph/row_rules.h"

namespace mulligan {
namespace {

constexpr const char* fused_forward = "residual_chain_fwd";
constexpr const char* fused_backward = "residual_chain_bwd";

const KernelRules fuse_residuals_rules{
    {fused_forward, RowRule::row_wise, "iipippipoooo", "resid and norm", "residual and norm, forward", true},
    {fused_backward, RowRule::mixing, "", "", "residual and norm, backward", true}};

// Arguments (docs/kernels.md).
struct Add {
  Value x, a, s, sum, n;
};
struct Skip {
  Value sum, skip, weight, gate, merged;
};
struct Mix {
  Value merged, x0, mix, y, n;
};
struct AddBackward {
  Value sum, a, s, dsum, dn, dx, da, ds;
};
struct SkipBackward {
  Value sum, skip, weight, gate, dmerged, dsum, dskip, dweight, dgate;
};
struct MixBackward {
  Value merged, x0, mix, dy, dn, dmerged, dx0, dmix;
};

using Members = std::vector<std::size_t>;

// The calls that made the input of a residual_mix_norm, in the forward pass.
struct Chain {
  std::size_t add_at = 0;
  std::optional<std::size_t> skip_at;
  Value sum;
};

std::optional<Chain> chain_of(const GraphRewrite& graph, Value merged, std::size_t before) {
  Chain chain;
  chain.sum = merged;
  std::optional<std::size_t> maker = graph.only_writer(merged);
  if (maker && graph.is(*maker, "skip_merge_fwd")) {
    if (named<Skip>(graph.call(*maker)).merged != merged) return {};
    chain.skip_at = maker;
    chain.sum = named<Skip>(graph.call(*maker)).sum;
    maker = graph.only_writer(chain.sum);
  }
  if (!maker || *maker >= chain.skip_at.value_or(before) || !graph.is(*maker, "scaled_add_norm_fwd"))
    return {};
  const auto add = named<Add>(graph.call(*maker));
  if (add.sum != chain.sum || add.n) return {};
  chain.add_at = *maker;
  return chain;
}

Value unless_own(Value skip, Value sum) {
  return skip == sum ? Value{} : skip;
}

// The residual_mix_norm_fwd at `mix_at` with what made its input.
void fuse_forward(GraphRewrite& graph, std::size_t mix_at) {
  const auto mix = named<Mix>(graph.call(mix_at));
  const std::optional<Chain> chain = chain_of(graph, mix.merged, mix_at);
  if (!chain) return;
  Members members = {chain->add_at};
  if (chain->skip_at) members.push_back(*chain->skip_at);
  members.push_back(mix_at);
  const auto add = named<Add>(graph.call(chain->add_at));
  std::vector<Value> skip(3);
  Value kept_merged;
  if (chain->skip_at) {
    const auto call = named<Skip>(graph.call(*chain->skip_at));
    skip = {unless_own(call.skip, call.sum), call.weight, call.gate};
    if (graph.needed_outside(mix.merged, members)) kept_merged = mix.merged;
  }
  const Value kept_sum = graph.needed_outside(add.sum, members) ? add.sum : Value{};
  graph.replace(members, {fused_forward,
                          {add.x, add.a, add.s, skip[0], skip[1], skip[2], mix.x0, mix.mix, kept_sum,
                           kept_merged, mix.y, mix.n},
                          graph.call(mix_at).attributes});
}

// What a sum x + s a passes on of its gradient.
struct TermGradients {
  Value dx, da, ds;
  double accumulate_dx = 0, accumulate_da = 0;
};

// By the scaled_add_norm_bwd at `at`, of the chain's sum; nothing where it cannot be joined.
std::optional<TermGradients> terms_of(const GraphRewrite& graph, const Chain& chain, Value gradient,
                                      std::optional<std::size_t> at) {
  if (!at || !graph.is(*at, "scaled_add_norm_bwd")) return {};
  const auto add = named<AddBackward>(graph.call(*at));
  const auto forward = named<Add>(graph.call(chain.add_at));
  if (add.sum != chain.sum || add.dsum != gradient || add.dn || add.a != forward.a || add.s != forward.s)
    return {};
  // Either the call writes the gradient of x, or it is the gradient of the sum itself.
  const bool read_later = graph.next(gradient, *at).has_value();
  if (add.dx && read_later) return {};
  return TermGradients{add.dx       ? add.dx
                       : read_later ? gradient
                                    : Value{},
                       add.da, add.ds, add.dx ? graph.attribute(*at, "accumulate_dx") : 0.0,
                       graph.attribute(*at, "accumulate_da")};
}

// Whether others than the mix, forward and backward at `mix_at`, read the sum of a chain without a skip: then
// it is there to be read, and a backward call that computes it again from two tensors would read one more.
bool has_other_readers(const GraphRewrite& graph, const Chain& chain, std::size_t mix_at) {
  const std::optional<std::size_t> mix = graph.next(chain.sum, chain.add_at);
  return !mix || graph.needed_outside(chain.sum, {chain.add_at, *mix, mix_at});
}

// The residual_mix_norm_bwd at `mix_at` with the calls that pass its gradient on. Without s the gradient of
// the sum is that of its terms, and no call passes it on.
void fuse_backward(GraphRewrite& graph, std::size_t mix_at) {
  const auto mix = named<MixBackward>(graph.call(mix_at));
  const std::optional<Chain> chain = chain_of(graph, mix.merged, mix_at);
  if (!chain || !mix.dmerged || !graph.is_scratch(mix.dmerged)) return;
  Members members = {mix_at};
  Value gradient = mix.dmerged;  // that the next call gets
  Value dmerged = graph.attribute(mix_at, "accumulate_dx") != 0 ? gradient : Value{};
  Value dsum, dskip, dweight, dgate;
  std::vector<Value> skip(3);
  double accumulate_dskip = 0;
  std::optional<std::size_t> user = graph.next(gradient, mix_at);
  if (chain->skip_at) {
    if (!user || !graph.is(*user, "skip_merge_bwd") || graph.next(gradient, *user)) return;
    const auto call = named<SkipBackward>(graph.call(*user));
    const auto forward = named<Skip>(graph.call(*chain->skip_at));
    const bool own = call.skip == call.sum;
    if (call.dmerged != gradient || call.sum != forward.sum || call.skip != forward.skip ||
        call.weight != forward.weight || call.gate != forward.gate || !call.dsum ||
        !graph.is_scratch(call.dsum) || (own && call.dskip != call.dsum))
      return;
    skip = {unless_own(call.skip, call.sum), call.weight, call.gate};
    dskip = own ? Value{} : call.dskip;
    dweight = call.dweight, dgate = call.dgate;
    accumulate_dskip = graph.attribute(*user, "accumulate_ds");
    gradient = call.dsum;
    if (graph.attribute(*user, "accumulate_dx") != 0) dsum = gradient;
    members.push_back(*user);
    user = graph.next(gradient, *user);
  }
  const auto forward = named<Add>(graph.call(chain->add_at));
  TermGradients terms;
  if (forward.s) {
    const std::optional<TermGradients> passed_on = terms_of(graph, *chain, gradient, user);
    if (!passed_on) return;
    terms = *passed_on;
    members.push_back(*user);
  } else {
    if (!chain->skip_at && has_other_readers(graph, *chain, mix_at)) return;
    terms.dx = gradient;
  }
  const auto number = [&](const char* name) { return graph.attribute(mix_at, name); };
  // What is computed again must still be what it was.
  for (const Value value : {forward.x, forward.a, forward.s, skip[0], mix.x0}) {
    if (value && graph.written_between(value, chain->add_at, members.back())) return;
  }
  graph.replace(members, {fused_backward,
                          {forward.x, forward.a, forward.s, skip[0], skip[1], skip[2],  mix.x0,
                           mix.mix,   dsum,      dmerged,   mix.dy,  mix.dn,  terms.dx, terms.da,
                           terms.ds,  dskip,     dweight,   dgate,   mix.dx0, mix.dmix},
                          {{"scale", number("scale")},
                           {"eps", number("eps")},
                           {"accumulate_dx", terms.accumulate_dx},
                           {"accumulate_da", terms.accumulate_da},
                           {"accumulate_dskip", accumulate_dskip},
                           {"accumulate_dx0", number("accumulate_dx0")}}});
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

// The mean of both lanes gives each lane the same gradient: the rms_norm_bwd at `norm_at` makes it at half
// its scale (which changes no digit), and lane_merge_bwd reads it for both.
void share_mean_gradient(GraphRewrite& graph, std::size_t norm_at) {
  const Call norm = graph.call(norm_at);
  const Value gradient = norm.arguments[2];
  if (!graph.is_scratch(gradient) || graph.attribute(norm_at, "accumulate_dx") != 0) return;
  Members members;
  std::vector<Value> halves;
  std::size_t at = norm_at;
  for (int lane = 0; lane < 2; ++lane) {
    const std::optional<std::size_t> copy = graph.next(gradient, at);
    if (!copy || !graph.is(*copy, "axpby")) return;
    const Call& call = graph.call(*copy);  // a b y
    if (call.arguments[0] != gradient || call.arguments[1] || !graph.is_scratch(call.arguments[2]) ||
        graph.attribute(*copy, "accumulate_y") != 0)
      return;
    members.push_back(at = *copy);
    halves.push_back(call.arguments[2]);
  }
  const double factor = graph.attribute(members[0], "alpha");
  const std::optional<std::size_t> merge = graph.next(halves[0], members[0]);
  if (!is_power_of_two(factor) || graph.attribute(members[1], "alpha") != factor ||
      graph.next(gradient, at) || !merge || !graph.is(*merge, "lane_merge_bwd") ||
      graph.next(halves[1], members[1]) != merge)
    return;
  Call merged = graph.call(*merge);
  constexpr std::size_t dout0 = 8, dout1 = 9;
  if (merged.arguments[dout0] != halves[0] || merged.arguments[dout1] != halves[1]) return;
  for (const Value half : halves) {
    if (graph.next(half, *merge)) return;
  }
  merged.arguments[dout0] = merged.arguments[dout1] = gradient;
  members.push_back(*merge);
  if (!graph.replace(members, std::move(merged))) return;
  Call scaled = norm;
  for (Attribute& attribute : scaled.attributes) {
    if (attribute.name == "scale") attribute.value *= factor;
  }
  graph.replace({norm_at}, std::move(scaled));
}

}  // namespace

std::size_t fuse_residuals(Graph& graph, const CallAccess& access, std::size_t split) {
  GraphRewrite rewrite(graph, access, split);
  // Backward first: a forward call then knows whether its sum is still read.
  for (std::size_t i = 0; i < graph.calls().size(); ++i) {
    if (rewrite.is(i, "residual_mix_norm_bwd")) fuse_backward(rewrite, i);
    if (rewrite.is(i, "rms_norm_bwd")) share_mean_gradient(rewrite, i);
  }
  for (std::size_t i = 0; i < graph.calls().size(); ++i) {
    if (rewrite.is(i, "residual_mix_norm_fwd")) fuse_forward(rewrite, i);
  }
  return rewrite.apply(graph);
}

}  // namespace mulligan
