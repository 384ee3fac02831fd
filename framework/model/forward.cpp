#include "framework/model/forward.h"

#include <cmath>
#include <limits>

#include "framework/graph/ops/add.h"
#include "framework/graph/ops/attention.h"
#include "framework/graph/ops/embedding.h"
#include "framework/graph/ops/gather_rows.h"
#include "framework/graph/ops/head_gate_xsa.h"
#include "framework/graph/ops/lane_merge.h"
#include "framework/graph/ops/leaky_relu_squared.h"
#include "framework/graph/ops/linear.h"
#include "framework/graph/ops/linear_leaky_relu_squared.h"
#include "framework/graph/ops/residual_mix_norm.h"
#include "framework/graph/ops/rms_norm.h"
#include "framework/graph/ops/scaled_add_norm.h"
#include "framework/graph/ops/skip_merge.h"
#include "framework/model/layer_order.h"
#include "framework/model/qkv_projection.h"
#include "framework/model/qwen2/forward.h"

namespace mulligan {
namespace {

constexpr double mlp_negative_slope = 0.5;

class ForwardBuilder {
 public:
  ForwardBuilder(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                 const ForwardInputs& inputs, const ForwardOptions& options)
      : tape_(tape),
        graph_(tape.graph()),
        m_(model),
        p_(parameters),
        in_(inputs),
        options_(options),
        eps_(norm_epsilon(model)),
        attention_inputs_(tape, model, parameters, inputs, options) {}

  Value build() {
    const LayerOrder order = layer_order(m_, options_.layer_order);
    x0_ = ops::rms_norm(tape_, ops::embedding(tape_, in_.tokens, p_("tok_emb.weight")), 1.0, eps_);
    Value x = x0_;
    std::vector<Value> skips;
    for (const std::int64_t layer : order.encoder) {
      x = serial_block(x, layer);
      skips.push_back(x);
    }
    const Value out = decode(x, order, skips);
    Value n = ops::rms_norm(tape_, out, 1.0, eps_);
    if (options_.head_rows) n = ops::gather_rows(tape_, n, options_.head_rows);
    if (options_.hidden) *options_.hidden = n;
    const Value head = p_(m_.tied_head ? "tok_emb.weight" : "lm_head.weight");
    const Value logits = ops::linear(tape_, n, head, matrix(graph_.type(n).dims[0], m_.vocabulary));
    return tap({TapKind::head, -1, -1, n, n, logits});
  }

 private:
  std::int64_t tokens() const { return graph_.type(in_.tokens).dims[0]; }
  TensorType matrix(std::int64_t rows, std::int64_t columns) const {
    return TensorType(graph_.type(x0_).dtype, {rows, columns});
  }
  Value tap(const TapSite& site) { return options_.taps ? options_.taps->at(tape_, site) : site.output; }
  Value bank(const char* name, std::int64_t index) { return graph_.slice(p_(name), index); }
  double ln_scale(std::int64_t layer) const {
    return m_.ln_scale ? 1.0 / std::sqrt(static_cast<double>(layer + 1)) : 1.0;
  }

  // Decoder entries: skip merges, and from lanes.parallel_start on two lanes instead of one stream.
  Value decode(Value x, const LayerOrder& order, std::vector<Value>& skips) {
    const std::int64_t merges = m_.skip_weights ? skip_rows(m_) : 0;
    bool parallel = false;
    ops::Lanes lanes;
    for (std::size_t entry = 0; entry < order.decoder.size(); ++entry) {
      const std::int64_t layer = order.decoder[entry];
      if (!parallel && m_.lanes.parallel_start > 0 && layer >= m_.lanes.parallel_start) {
        parallel = true;
        lanes = {x, x};
      }
      Value& target = parallel ? lanes.attention : x;
      if (static_cast<std::int64_t>(entry) < merges && !skips.empty()) {
        target = merge_skip(target, skips.back(), static_cast<std::int64_t>(entry));
        skips.pop_back();
      }
      if (parallel) {
        lanes = parallel_block(lanes, layer);
      } else {
        x = serial_block(x, layer);
      }
    }
    if (!parallel) return x;
    if (m_.lanes.final_lane == FinalLane::attention) return lanes.attention;
    if (m_.lanes.final_lane == FinalLane::mlp) return lanes.mlp;
    return ops::add(tape_, lanes.attention, lanes.mlp, 0.5, 0.5);
  }

  Value merge_skip(Value x, Value skip, std::int64_t row) {
    const Value gate = m_.skip_gates ? graph_.slice(p_("skip_gates"), row) : Value{};
    return ops::skip_merge(tape_, x, skip, graph_.slice(p_("skip_weights"), row), gate);
  }

  // mix0*x + mix1*x0 and its scaled norm, or x itself where the model has no residual mix.
  ops::MixedResidual mixed(Value x, std::int64_t layer, bool want_sum) {
    if (!m_.residual_mix) return {x, ops::rms_norm(tape_, x, ln_scale(layer), eps_)};
    return ops::residual_mix_norm(tape_, x, x0_, p_(block_parameter(layer, "resid_mix")), ln_scale(layer),
                                  eps_, want_sum);
  }

  Value serial_block(Value x, std::int64_t layer) {
    const auto [y, n] = mixed(x, layer, true);
    const Value a = attention_part(n, layer);
    const auto [after_attention, n2] = ops::scaled_add_norm(
        tape_, y, a, p_(block_parameter(layer, "attn_scale")), ln_scale(layer), eps_, true);
    const Value mlp = mlp_part(n2, layer);
    const Value out = ops::scaled_add_norm(tape_, after_attention, mlp,
                                           p_(block_parameter(layer, "mlp_scale")), 1.0, eps_, false)
                          .sum;
    finish_block(out, Value{});
    return out;
  }

  ops::Lanes parallel_block(const ops::Lanes& lanes, std::int64_t layer) {
    const Value n = mixed(lanes.attention, layer, false).norm;
    const Value a = attention_part(n, layer);
    const Value mlp = mlp_part(ops::rms_norm(tape_, lanes.mlp, ln_scale(layer), eps_), layer);
    const ops::Lanes out =
        ops::lane_merge(tape_, lanes, a, mlp,
                        {p_(block_parameter(layer, "attn_scale")), p_(block_parameter(layer, "mlp_scale")),
                         graph_.slice(p_("parallel_resid_lambdas"), layer),
                         graph_.slice(p_("parallel_post_lambdas"), layer)});
    finish_block(out.attention, out.mlp);
    return out;
  }

  void finish_block(Value stream, Value lane1) {
    if (options_.after_block) options_.after_block(slot_, stream, lane1);
    ++slot_;
  }

  Value attention_part(Value n, std::int64_t layer) {
    const ops::AttentionInputs in = attention_inputs_(n, layer, slot_);
    Value o = ops::attention(tape_, in.q, in.k, in.v, in_.cu_seqlens);
    const bool xsa = layer_has_xsa(m_, layer);
    if (xsa || in.gate) o = ops::head_gate_xsa(tape_, o, xsa ? in.v_again : Value{}, in.gate);
    const Value out = ops::linear(tape_, o, bank("qo_bank", m_.layers + layer), matrix(tokens(), m_.width));
    return tap({TapKind::attention_output, slot_, layer, o, n, out});
  }

  Value mlp_part(Value n, std::int64_t layer) {
    const TensorType hidden = matrix(tokens(), m_.mlp_hidden);
    const TapSite up{TapKind::mlp_up, slot_, layer, n, n, Value{}};
    const bool changed = options_.taps && options_.taps->changes(graph_, up, hidden);
    if (!changed && ops::can_fuse_activation(tape_)) return fused_mlp_part(n, layer, hidden);
    Value u = ops::linear(tape_, n, bank("mlp_up_bank", layer), hidden);
    u = tap({TapKind::mlp_up, slot_, layer, n, n, u});
    const Value activation = ops::leaky_relu_squared(tape_, u, mlp_negative_slope);
    const Value out =
        ops::linear(tape_, activation, bank("mlp_down_bank", layer), matrix(tokens(), m_.width));
    return tap({TapKind::mlp_down, slot_, layer, activation, n, out});
  }

  Value fused_mlp_part(Value n, std::int64_t layer, const TensorType& hidden) {
    const ops::Activated activated = ops::linear_leaky_relu_squared(
        tape_, n, bank("mlp_up_bank", layer), hidden, mlp_negative_slope, options_.taps != nullptr);
    if (options_.taps) tap({TapKind::mlp_up, slot_, layer, n, n, activated.u});
    const Value out = ops::activated_linear(tape_, activated, mlp_negative_slope,
                                            bank("mlp_down_bank", layer), matrix(tokens(), m_.width));
    return tap({TapKind::mlp_down, slot_, layer, activated.y, n, out});
  }

  Tape& tape_;
  Graph& graph_;
  const ModelConfig& m_;
  const ParameterValues& p_;
  const ForwardInputs& in_;
  const ForwardOptions& options_;
  double eps_;
  QkvProjection attention_inputs_;
  Value x0_;
  std::int64_t slot_ = 0;
};

}  // namespace

double norm_epsilon(const ModelConfig& model) {
  return model.norm_eps > 0 ? model.norm_eps : static_cast<double>(std::numeric_limits<float>::epsilon());
}

Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options) {
  if (model.family == ModelFamily::qwen2)
    return qwen2::build_forward(tape, model, parameters, inputs, options);
  return ForwardBuilder(tape, model, parameters, inputs, options).build();
}

}  // namespace mulligan
