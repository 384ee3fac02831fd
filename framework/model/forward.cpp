#include "framework/model/forward.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "framework/graph/ops/add.h"
#include "framework/graph/ops/embedding.h"
#include "framework/graph/ops/gather_rows.h"
#include "framework/graph/ops/lane_chain.h"
#include "framework/graph/ops/lane_merge.h"
#include "framework/graph/ops/leaky_relu_squared.h"
#include "framework/graph/ops/linear.h"
#include "framework/graph/ops/linear_leaky_relu_squared.h"
#include "framework/graph/ops/residual_mix_norm.h"
#include "framework/graph/ops/rms_norm.h"
#include "framework/graph/ops/scale_rows.h"
#include "framework/graph/ops/scaled_add_norm.h"
#include "framework/graph/ops/skip_merge.h"
#include "framework/model/elements/stages.h"
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
        elements_{tape, model, parameters},
        eps_(norm_epsilon(model)),
        attention_inputs_(tape, model, parameters, inputs, options) {}

  Value build() {
    const LayerOrder order = layer_order(m_, options_.layer_order);
    const Value embedded = ops::embedding(tape_, in_.tokens, p_("tok_emb.weight"));
    const Value entering = mix_embedding(elements_, {in_.tokens, options_.row_length, embedded});
    x0_ = ops::rms_norm(tape_, entering, 1.0, eps_);
    Value x = x0_;
    std::vector<Value> skips;
    for (const std::int64_t layer : order.encoder) {
      x = serial_block(x, layer);
      skips.push_back(x);
    }
    Value n = decode_and_norm(x, order, skips);
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

  // What a block of lanes reads; a norm of lane 1 that is absent is still to be made.
  struct LaneInputs {
    ops::Lanes lanes;
    Value attention_norm, mlp_norm;
  };

  // Decoder entries, and the norm behind the last one: skip merges, and from lanes.parallel_start on two
  // lanes instead of one stream.
  Value decode_and_norm(Value x, const LayerOrder& order, std::vector<Value>& skips) {
    const std::int64_t merges = m_.skip_weights ? skip_rows(m_) : 0;
    std::optional<ops::LaneBlock> open;  // the last block of lanes, before its results enter them
    std::optional<ops::Lanes> lanes;     // where they have entered already
    for (std::size_t entry = 0; entry < order.decoder.size(); ++entry) {
      const std::int64_t layer = order.decoder[entry];
      const bool parallel =
          open || lanes || (m_.lanes.parallel_start > 0 && layer >= m_.lanes.parallel_start);
      ops::LaneSkip skip;
      if (static_cast<std::int64_t>(entry) < merges && !skips.empty()) {
        skip = skip_of(skips.back(), static_cast<std::int64_t>(entry));
        skips.pop_back();
      }
      if (!parallel) {
        x = serial_block(merge_skip(x, skip), layer);
        continue;
      }
      const LaneInputs in = open ? chained_lanes(*open, skip, layer)
                                 : lane_inputs(lanes.value_or(ops::Lanes{x, x}), skip, layer);
      const ops::LaneBlock block = lane_block(in, layer);
      if (fuses_lanes()) {
        open = block;
        finish_open_block(block);
      } else {
        lanes = merged(block);
        finish_block(lanes->attention, lanes->mlp);
      }
    }
    if (open && m_.lanes.final_lane == FinalLane::mean) return ops::lane_mean_norm(tape_, *open, 1.0, eps_);
    if (open) lanes = merged(*open);
    return ops::rms_norm(tape_, lanes ? final_lane(*lanes) : x, 1.0, eps_);
  }

  Value final_lane(const ops::Lanes& lanes) {
    if (m_.lanes.final_lane == FinalLane::attention) return lanes.attention;
    if (m_.lanes.final_lane == FinalLane::mlp) return lanes.mlp;
    return ops::add(tape_, lanes.attention, lanes.mlp, 0.5, 0.5);
  }

  ops::Lanes merged(const ops::LaneBlock& block) {
    return ops::lane_merge(tape_, block.lanes, block.a, block.m, block.parameters);
  }

  // Whether the results of a block of lanes enter them along with what comes next.
  bool fuses_lanes() const { return m_.residual_mix && ops::has_lane_chain(tape_.fused()); }

  // Who looks at the lanes of such a block gets them in a call of their own.
  void finish_open_block(const ops::LaneBlock& block) {
    const ops::Lanes lanes = options_.after_block ? merged(block) : ops::Lanes{};
    finish_block(lanes.attention, lanes.mlp);
  }

  ops::LaneSkip skip_of(Value skip, std::int64_t row) {
    return {skip, graph_.slice(p_("skip_weights"), row),
            m_.skip_gates ? graph_.slice(p_("skip_gates"), row) : Value{}};
  }
  Value merge_skip(Value x, const ops::LaneSkip& skip) {
    return skip.skip ? ops::skip_merge(tape_, x, skip.skip, skip.weight, skip.gate) : x;
  }

  // mix0*x + mix1*x0 and its scaled norm, or x itself where the model has no residual mix.
  ops::MixedResidual mixed(Value x, std::int64_t layer, bool want_sum) {
    if (!m_.residual_mix) return {x, ops::rms_norm(tape_, x, ln_scale(layer), eps_)};
    return ops::residual_mix_norm(tape_, x, x0_, p_(block_parameter(layer, "resid_mix")), ln_scale(layer),
                                  eps_, want_sum);
  }

  Value serial_block(Value x, std::int64_t layer) {
    const auto [y, n] = mixed(x, layer, true);
    const OutputScale attn_scale = output_scale(p_(block_parameter(layer, "attn_scale")));
    const Value a = attention_part(n, layer, attn_scale.of_weight);
    const auto [after_attention, n2] =
        ops::scaled_add_norm(tape_, y, a, attn_scale.of_results, ln_scale(layer), eps_, true);
    const OutputScale mlp_scale = output_scale(p_(block_parameter(layer, "mlp_scale")));
    const Value mlp = mlp_part(n2, layer, mlp_scale.of_weight);
    const Value out =
        ops::scaled_add_norm(tape_, after_attention, mlp, mlp_scale.of_results, 1.0, eps_, false).sum;
    finish_block(out, Value{});
    return out;
  }

  LaneInputs lane_inputs(ops::Lanes lanes, const ops::LaneSkip& skip, std::int64_t layer) {
    lanes.attention = merge_skip(lanes.attention, skip);
    return {lanes, mixed(lanes.attention, layer, false).norm, Value{}};
  }

  LaneInputs chained_lanes(const ops::LaneBlock& before, const ops::LaneSkip& skip, std::int64_t layer) {
    const ops::NextLanes next = ops::lane_chain(
        tape_, before, skip, x0_, p_(block_parameter(layer, "resid_mix")), ln_scale(layer), eps_);
    return {next.lanes, next.attention_norm, next.mlp_norm};
  }

  ops::LaneBlock lane_block(const LaneInputs& in, std::int64_t layer) {
    const Value a = attention_part(in.attention_norm, layer);
    const Value mlp_norm =
        in.mlp_norm ? in.mlp_norm : ops::rms_norm(tape_, in.lanes.mlp, ln_scale(layer), eps_);
    return {in.lanes,
            a,
            mlp_part(mlp_norm, layer),
            {p_(block_parameter(layer, "attn_scale")), p_(block_parameter(layer, "mlp_scale")),
             graph_.slice(p_("parallel_resid_lambdas"), layer),
             graph_.slice(p_("parallel_post_lambdas"), layer)}};
  }

  void finish_block(Value stream, Value lane1) {
    if (options_.after_block) options_.after_block(slot_, stream, lane1);
    ++slot_;
  }

  // Whether products widen the projections' weights as they read them (LayerCast): then no scaled copy of a
  // weight may take its place, for it would be rounded or as large as what was saved.
  bool widens() const { return graph_.type(p_("mlp_up_bank")).dtype != graph_.type(x0_).dtype; }

  // The scale [D] of a linear layer's results, in one of two places.
  struct OutputScale {
    Value of_weight, of_results;
  };

  // Where the scale is trained it goes into the layer's weight, once for all passes of the layer: that saves
  // the gradient of the results before they are scaled. No tap may look at the results.
  OutputScale output_scale(Value scale) const {
    const bool in_weight = !options_.taps && !widens() && tape_.differentiating() &&
                           tape_.needs_gradient(scale) && ops::has_scale_rows(tape_.fused());
    return in_weight ? OutputScale{scale, Value{}} : OutputScale{Value{}, scale};
  }

  // A matrix of a bank, its rows scaled where `scale` is there.
  Value output_weight(const char* name, std::int64_t index, Value scale) {
    if (!scale) return bank(name, index);
    const auto [known, is_new] = scaled_weights_.try_emplace({name, index});
    if (is_new) known->second = ops::scale_rows(tape_, bank(name, index), scale);
    return known->second;
  }

  // `scale` [D]: of the results, or absent.
  Value attention_part(Value n, std::int64_t layer, Value scale = {}) {
    const ops::AttentionInputs in = attention_inputs_(n, layer, slot_);
    const Value heads = attend(elements_, {in.q, in.k, in.v, in_.cu_seqlens});
    const Value o = mix_attention(elements_, {tape_, layer, heads, in.v_again, n, in.gate});
    const Value out =
        ops::linear(tape_, o, output_weight("qo_bank", m_.layers + layer, scale), matrix(tokens(), m_.width));
    return tap({TapKind::attention_output, slot_, layer, o, n, out});
  }

  Value mlp_part(Value n, std::int64_t layer, Value scale = {}) {
    const TensorType hidden = matrix(tokens(), m_.mlp_hidden);
    const TapSite up{TapKind::mlp_up, slot_, layer, n, n, Value{}};
    const bool changed = options_.taps && options_.taps->changes(graph_, up, hidden);
    if (!changed && !widens() && ops::can_fuse_activation(tape_))
      return fused_mlp_part(n, layer, hidden, scale);
    Value u = ops::linear(tape_, n, bank("mlp_up_bank", layer), hidden);
    u = tap({TapKind::mlp_up, slot_, layer, n, n, u});
    const Value activation = ops::leaky_relu_squared(tape_, u, mlp_negative_slope);
    const Value out = ops::linear(tape_, activation, output_weight("mlp_down_bank", layer, scale),
                                  matrix(tokens(), m_.width));
    return tap({TapKind::mlp_down, slot_, layer, activation, n, out});
  }

  Value fused_mlp_part(Value n, std::int64_t layer, const TensorType& hidden, Value scale) {
    const ops::Activated activated = ops::linear_leaky_relu_squared(
        tape_, n, bank("mlp_up_bank", layer), hidden, mlp_negative_slope, options_.taps != nullptr);
    if (options_.taps) tap({TapKind::mlp_up, slot_, layer, n, n, activated.u});
    const Value out =
        ops::activated_linear(tape_, activated, mlp_negative_slope,
                              output_weight("mlp_down_bank", layer, scale), matrix(tokens(), m_.width));
    return tap({TapKind::mlp_down, slot_, layer, activated.y, n, out});
  }

  Tape& tape_;
  Graph& graph_;
  const ModelConfig& m_;
  const ParameterValues& p_;
  const ForwardInputs& in_;
  const ForwardOptions& options_;
  ElementContext elements_;
  double eps_;
  QkvProjection attention_inputs_;
  std::map<std::pair<std::string, std::int64_t>, Value> scaled_weights_;  // by bank and index
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
