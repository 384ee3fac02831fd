#include "framework/model/forward.h"

#include <cmath>
#include <limits>
#include <optional>

#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"
#include "framework/model/modded/forward.h"
#include "framework/model/parameters.h"
#include "framework/model/qkv_projection.h"
#include "framework/model/qwen2/forward.h"
#include "kernels/axpby/op.h"
#include "kernels/embedding/op.h"
#include "kernels/embedding/op_gather.h"
#include "kernels/lane_merge/op.h"
#include "kernels/leaky_relu_squared/op.h"
#include "kernels/matmul/op.h"
#include "kernels/residual_mix_norm/op.h"
#include "kernels/rms_norm/op.h"
#include "kernels/round_fp8/op.h"
#include "kernels/scaled_add_norm/op.h"
#include "kernels/skip_merge/op.h"

namespace mulligan {
namespace {

struct ForwardBuilder {
  Tape& tape_;
  const ModelConfig& m_;
  const ParameterValues& p_;
  const ForwardInputs& in_;
  const ForwardOptions& options_;
  Graph& graph_ = tape_.graph();
  ElementContext elements_{tape_, m_, p_};
  double eps_ = norm_epsilon(m_);
  LayerOrder order_ = layer_order(m_, options_.layer_order);
  HeadRows head_rows_{tape_, in_, options_, std::ssize(order_.encoder) + std::ssize(order_.decoder)};
  QkvProjection attention_inputs_{tape_, m_, p_, in_, options_};
  Value x0_ = {};
  std::int64_t slot_ = 0;

  Value build() {
    const Value embedded = ops::embedding(tape_, in_.tokens, p_("tok_emb.weight"));
    const Value entering = mix_embedding(elements_, {in_.tokens, options_.row_length, embedded});
    x0_ = ops::rms_norm(tape_, entering, 1.0, eps_);
    Value x = x0_;
    std::vector<Value> skips;
    for (const std::int64_t layer : order_.encoder) {
      x = serial_block(x, layer);
      skips.push_back(x);
    }
    const Value n = head_rows_.after_blocks(decode_and_norm(x, skips));
    if (options_.hidden) *options_.hidden = n;
    const Value head = p_(m_.tied_head ? "tok_emb.weight" : "lm_head.weight");
    const Value logits = head_logits(tape_, options_, n, head);
    return tap({TapKind::head, -1, -1, n, n, logits});
  }

 private:
  std::int64_t rows(Value x) const { return graph_.type(x).dims[0]; }
  TensorType matrix(std::int64_t rows, std::int64_t columns) const {
    return TensorType(graph_.type(x0_).dtype, {rows, columns});
  }
  Value tap(const TapSite& site) {
    if (!options_.taps) return site.output;
    graph_.keep(site.output);
    return options_.taps->at(tape_, site);
  }
  Value bank(const char* name, std::int64_t index) { return graph_.slice(p_(name), index); }
  double ln_scale(std::int64_t layer) const {
    return m_.ln_scale ? 1.0 / std::sqrt(static_cast<double>(layer + 1)) : 1.0;
  }

  // Decoder entries, and the norm after the last one: skip merges, and from lanes.parallel_start on two
  // lanes instead of one stream.
  Value decode_and_norm(Value x, std::vector<Value>& skips) {
    const std::int64_t merges = m_.skip_weights ? skip_rows(m_) : 0;
    std::optional<ops::Lanes> lanes;
    for (std::size_t entry = 0; entry < order_.decoder.size(); ++entry) {
      const std::int64_t layer = order_.decoder[entry];
      if (m_.lanes.parallel_start > 0 && layer >= m_.lanes.parallel_start && !lanes) lanes = {x, x};
      Value& stream = lanes ? lanes->attention : x;
      if (static_cast<std::int64_t>(entry) < merges && !skips.empty()) {
        stream = merge_skip(stream, skips.back(), static_cast<std::int64_t>(entry));
        skips.pop_back();
      }
      if (lanes)
        lanes = lane_block(*lanes, layer);
      else
        x = serial_block(x, layer);
    }
    return ops::rms_norm(tape_, lanes ? final_lane(*lanes) : x, 1.0, eps_);
  }

  Value final_lane(const ops::Lanes& lanes) {
    if (m_.lanes.final_lane == FinalLane::attention) return lanes.attention;
    if (m_.lanes.final_lane == FinalLane::mlp) return lanes.mlp;
    return ops::add(tape_, lanes.attention, lanes.mlp, 0.5, 0.5);
  }

  Value merge_skip(Value x, Value skip, std::int64_t row) {
    return ops::skip_merge(tape_, x, skip, graph_.slice(p_("skip_weights"), row),
                           m_.skip_gates ? graph_.slice(p_("skip_gates"), row) : Value{});
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
    const auto [after_attention, n2] =
        ops::scaled_add_norm(tape_, head_rows_.in_block(slot_, y), a,
                             p_(block_parameter(layer, "attn_scale")), ln_scale(layer), eps_, true);
    const Value m = mlp_part(n2, layer);
    const Value out = ops::scaled_add_norm(tape_, after_attention, m, p_(block_parameter(layer, "mlp_scale")),
                                           1.0, eps_, false)
                          .sum;
    finish_block(out, Value{});
    return out;
  }

  ops::Lanes lane_block(ops::Lanes lanes, std::int64_t layer) {
    const Value a = attention_part(mixed(lanes.attention, layer, false).norm, layer);
    lanes = {head_rows_.in_block(slot_, lanes.attention), head_rows_.in_block(slot_, lanes.mlp)};
    const Value m = mlp_part(ops::rms_norm(tape_, lanes.mlp, ln_scale(layer), eps_), layer);
    const ops::Lanes out =
        ops::lane_merge(tape_, lanes, a, m,
                        {p_(block_parameter(layer, "attn_scale")), p_(block_parameter(layer, "mlp_scale")),
                         graph_.slice(p_("parallel_resid_lambdas"), layer),
                         graph_.slice(p_("parallel_post_lambdas"), layer)});
    finish_block(out.attention, out.mlp);
    return out;
  }

  void finish_block(Value stream, Value lane1) {
    for (const auto& [name, value] : {std::pair{"block", stream}, {"lane1", lane1}}) {
      if (!options_.point || !value) continue;
      graph_.keep(value);
      options_.point(name, slot_, value);
    }
    ++slot_;
  }

  Value attention_part(Value n, std::int64_t layer) {
    const ops::AttentionInputs in = attention_inputs_(n, layer, slot_);
    const Value heads = attend(elements_, {in.q, in.k, in.v, in_.cu_seqlens});
    const Value o =
        head_rows_.in_block(slot_, mix_attention(elements_, {tape_, layer, heads, in.v_again, in.gate}));
    if (options_.taps) n = head_rows_.in_block(slot_, n);
    const Value out = ops::linear(tape_, o, bank("qo_bank", m_.layers + layer), matrix(rows(o), m_.width));
    return tap({TapKind::attention_output, slot_, layer, o, n, out});
  }

  Value mlp_part(Value n, std::int64_t layer) {
    Value u = ops::linear(tape_, n, bank("mlp_up_bank", layer), matrix(rows(n), m_.mlp_hidden));
    u = tap({TapKind::mlp_up, slot_, layer, n, n, u});
    const Value activation = ops::leaky_relu_squared(tape_, u, m_.mlp_negative_slope);
    const Value out = ops::linear(tape_, activation, bank("mlp_down_bank", layer), matrix(rows(n), m_.width));
    return tap({TapKind::mlp_down, slot_, layer, activation, n, out});
  }
};

}  // namespace

HeadRows::HeadRows(Tape& tape, const ForwardInputs& inputs, const ForwardOptions& options,
                   std::int64_t blocks)
    : tape_(tape), rows_(options.head_rows), last_slot_(-1) {
  const Graph& graph = tape.graph();
  if (rows_ && graph.type(rows_).dims[0] < graph.type(inputs.tokens).dims[0]) last_slot_ = blocks - 1;
}

Value HeadRows::in_block(std::int64_t slot, Value x) const {
  return slot == last_slot_ ? ops::gather_rows(tape_, x, rows_) : x;
}

Value HeadRows::after_blocks(Value x) const {
  return rows_ && last_slot_ < 0 ? ops::gather_rows(tape_, x, rows_) : x;
}

Value head_logits(Tape& tape, const ForwardOptions& options, Value hidden, Value table) {
  const TensorType &rows = tape.graph().type(hidden), &tokens = tape.graph().type(table);
  const TensorType logits(rows.dtype, {rows.dims[0], tokens.dims[0]});
  if (options.fp8_gradient_scale == 0) return ops::linear(tape, hidden, table, logits);
  // After an RMS norm no element of a row is larger than the square root of its width, and E4M3 ends at 448. Tables hold
  // numbers of 0.001 to 1; scaled by 2^-8 all of them down to 6e-5 keep their three bits.
  const double largest = std::sqrt(static_cast<double>(rows.dims[1]));
  return ops::fp8_linear(tape, hidden, table, logits,
                         {.input = std::exp2(std::ceil(std::log2(largest / 448))),
                          .weight = 0x1p-8,
                          .gradient = options.fp8_gradient_scale});
}

double norm_epsilon(const ModelConfig& model) {
  return model.norm_eps > 0 ? model.norm_eps : static_cast<double>(std::numeric_limits<float>::epsilon());
}

Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options) {
  if (model.family == ModelFamily::qwen2)
    return qwen2::build_forward(tape, model, parameters, inputs, options);
  if (model.family == ModelFamily::modded)
    return modded::build_forward(tape, model, parameters, inputs, options);
  const Value logits = ForwardBuilder{tape, model, parameters, inputs, options}.build();
  fuse_output_scales(tape);
  fuse_lanes(tape);
  return logits;
}

}  // namespace mulligan
