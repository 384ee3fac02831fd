// How each kernel treats rows of tokens, as calls that can be probed (row_probe.h).
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test {
namespace {

// Arguments that several kernels share.
const std::string lanes = "lane0:Td lane1:Td a:Td m:Td attn_scale:d/f mlp_scale:d/f rho:2/f post:22/f ",
                  lane_gradients =
                      "dlane0:Td dlane1:Td da:Td dm:Td dattn_scale:d/f dmlp_scale:d/f drho:2/f dpost:22/f ",
                  skip = "skip:Td weight:d/f gate:d/f x0:Td mix:2d/f ",
                  skip_gradients = "dskip:Td dweight:d/f dgate:d/f dx0:Td dmix:2d/f",
                  rope = "cos:Lr/f sin:Lr/f ",
                  adamw = "gradient:Fd/f master:Fd/f exp_avg:Fd/f exp_avg_sq:Fd/f ",
                  norm = "scale=0.7 eps=1e-6", rotary = "rope_dims=8 norm=1 eps=1e-6",
                  stable =
                      "softmax_scale=0.25 beta=2 tolerance=1e-3 min_repeats=2 cap=20 round_normalizer=1 "
                      "round_sums=1",
                  update = "lr_multiplier=1 weight_decay=0.1 average_decay=0.9";

}  // namespace

const std::vector<RowCase>& row_cases() {
  static const std::vector<RowCase> cases = {
      // Products: y = x w^T, dx = dy w, dw += dy^T x; many matrices.
      {"matmul", "a:Tk b:nk c:Tn", "transpose_b=1 alpha=1"},
      {"matmul", "a:Tk b:nk c:Tn/f", "transpose_b=1 alpha=0.5 beta=1"},
      {"matmul", "a:Tn b:nk c:Tk", "alpha=1"},
      {"matmul", "a:Tk b:dk c:Td", "transpose_b=1 alpha=1 beta=0.5", 1},
      {"matmul", "a:Ty b:dy c:Td", "transpose_b=1 alpha=1", 3},
      {"matmul", "a:Tn b:Tk c:nk/f", "transpose_a=1 alpha=1 beta=1"},
      {"matmul", "a:Tmk b:Tkd c:Tmd", "alpha=1", 1},
      {"matmul_add", "a:Tk b:nk term:Tn c:Tn", "transpose_b=1 alpha=1 beta=1"},
      {"symmetric_matmul", "a:nk b:nk c:nn", "transpose_b=1 alpha=1"},
      {"widened_matmul", "a:Tk/f b:nk/b c:Tn/f", "transpose_b=1"},
      {"widened_matmul", "a:Tn/f b:nk/b c:Tk/f", "beta=1"},
      {"linear_leaky_relu_squared_fwd", "x:Tk w:nk u:Tn y:Tn", "slope=0.5"},
      {"linear_leaky_relu_squared_bwd", "dy:Tk w:kn u:Tn du:Tn", "slope=0.5"},
      // Lookups.
      {"embedding_fwd", "ids:T/i table:Vd x:Td"},
      {"embedding_bwd", "ids:T/i dx:Td dtable:Vd/f"},
      // Norms and residuals.
      {"rms_norm_fwd", "x:Td y:Td", norm},
      {"rms_norm_bwd", "x:Td dy:Td dx:Td", norm},
      {"weighted_rms_norm_fwd", "x:Td weight:d/f y:Td", norm},
      {"weighted_rms_norm_bwd", "x:Td weight:d/f dy:Td dx:Td dweight:d/f", norm},
      {"row_bias_fwd", "x:Td bias:d/f y:Td"},
      {"row_bias_bwd", "dy:Td dbias:d/f"},
      {"residual_mix_norm_fwd", "x:Td x0:Td mix:2d/f y:Td n:Td", norm},
      {"residual_mix_norm_bwd", "x:Td x0:Td mix:2d/f dy:Td dn:Td dx:Td dx0:Td dmix:2d/f", norm},
      {"scaled_add_norm_fwd", "x:Td a:Td s:d/f y:Td n:Td", norm},
      {"scaled_add_norm_bwd", "y:Td a:Td s:d/f dy:Td dn:Td dx:Td da:Td ds:d/f", norm},
      {"skip_merge_fwd", "x:Td s:Td weight:d/f gate:d/f y:Td"},
      {"skip_merge_bwd", "x:Td s:Td weight:d/f gate:d/f dy:Td dx:Td ds:Td dweight:d/f dgate:d/f"},
      {"lane_merge_fwd", lanes + "out0:Td out1:Td"},
      {"lane_merge_bwd", lanes + "dout0:Td dout1:Td " + lane_gradients},
      {"residual_chain_fwd", "x:Td a:Td s:d/f " + skip + "sum:Td merged:Td y:Td n:Td", norm},
      {"residual_chain_bwd",
       "x:Td a:Td s:d/f " + skip + "dsum:Td dmerged:Td dy:Td dn:Td dx:Td da:Td ds:d/f " + skip_gradients,
       norm},
      {"lane_chain_fwd", lanes + skip + "merged:Td out1:Td n0:Td n1:Td", norm},
      {"lane_chain_bwd",
       lanes + skip + "dmerged:Td dout1:Td dn0:Td dn1:Td " + lane_gradients + skip_gradients, norm},
      {"lane_mean_norm_fwd", lanes + "n:Td", norm},
      {"lane_mean_norm_bwd", lanes + "dn:Td " + lane_gradients, norm},
      {"add_codes", "codes:e/u grid:2/d values:F/f", "bits=3"},
      {"scale_rows_fwd", "w:Td s:T/f y:Td"},
      {"scale_rows_bwd", "w:Td s:T/f dy:Td/f dw:Td/f ds:T/f"},
      // Heads and attention.
      {"qk_norm_rope_fwd", "x:THh " + rope + "gain:H/f y:THh", rotary},
      {"qk_norm_rope_bwd", "x:THh " + rope + "gain:H/f dy:THh dx:THh dgain:H/f", rotary},
      {"qkv_split_norm_rope_fwd", "packed:TF " + rope + "gain:H/f q:THh k:TKh v:TKh gate:TH", rotary},
      {"qkv_split_norm_rope_bwd",
       "packed:TF " + rope + "gain:H/f dq:THh dk:TKh dv:TKh dv_xsa:TKh dgate:TH dpacked:TF dgain:H/f",
       rotary},
      // Sequences of 59: some begin inside a block of queries whose tiles of keys follow another sequence's.
      {"attention_fwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f", "softmax_scale=0.25", 59},
      {"attention_fwd", "q:THh k:TKh v:TKh cu_seqlens:C/i o:THh lse:TH/f", "softmax_scale=0.25"},
      {"attention_stable_fwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f", stable, 59, false},
      {"attention_bidirectional_fwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f", "softmax_scale=0.25",
       59},
      {"attention_bidirectional_bwd",
       "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f do:TKh dq:TKh dk:T1h dv:T1h", "softmax_scale=0.25",
       59},
      {"attention_bwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f do:TKh dq:TKh dk:T1h dv:T1h",
       "softmax_scale=0.25", 59},
      {"head_gate_xsa_fwd", "o:THh v:TKh gate:TH y:THh", "gate_scale=1.5"},
      {"head_gate_xsa_bwd", "o:THh v:TKh gate:TH dy:THh do:THh dv:TKh dgate:TH", "gate_scale=1.5"},
      {"smear_gate_fwd", "x:Td tokens:T/i weight:1w lambda:1/f y:Td", "document_start=1"},
      {"smear_gate_bwd", "x:Td tokens:T/i weight:1w lambda:1/f dy:Td dx:Td dweight:1w/f dlambda:1/f",
       "document_start=1"},
      // Elements.
      {"leaky_relu_squared_fwd", "u:TF y:TF", "slope=0.5"},
      {"leaky_relu_squared_bwd", "u:TF dy:TF du:TF", "slope=0.5"},
      {"silu_gate_fwd", "g:TF u:TF y:TF"},
      {"silu_gate_bwd", "g:TF u:TF dy:TF dg:TF du:TF"},
      {"softcap_fwd", "z:TV y:TV", "cap=3"},
      {"softcap_bwd", "z:TV dy:TV dz:TV", "cap=3"},
      {"rational_softcap_fwd", "z:TV y:TV/f", "cap=3"},
      {"rational_softcap_bwd", "z:TV dy:TV/f dz:TV", "cap=3"},
      {"asymmetric_softcap_fwd", "z:TV positive:1/f negative:1/f y:TV"},
      {"asymmetric_softcap_bwd", "z:TV positive:1/f negative:1/f dy:TV dz:TV dpositive:1/f dnegative:1/f"},
      {"axpby", "a:Td b:Td y:Td", "alpha=0.7 beta=0.3"},
      {"cast", "x:Td y:Td/f"},
      {"scale_by", "x:Td/f scale:1/f"},
      {"lerp_into", "average:Td/f x:Td/f", "decay=0.9"},
      // Losses.
      {"cross_entropy_fwd", "logits:TV targets:T/i token_loss:T/f lse:T/f"},
      {"cross_entropy_bwd", "logits:TV targets:T/i lse:T/f upstream:T/f dlogits:TV"},
      {"softcap_ce_fwd", "logits:TV targets:T/i token_loss:T/f lse:T/f", "softcap=3"},
      {"softcap_ce_bwd", "logits:TV targets:T/i lse:T/f upstream:T/f dlogits:TV", "softcap=3"},
      {"softcap_ce_fwd_bwd", "logits:TV targets:T/i upstream:T/f token_loss:T/f dlogits:TV", "softcap=3"},
      // Sums over all there is, weights, and what knows no rows.
      {"sum_f64", "x:Td/f total:1/d"},
      {"sum_squares_f64", "x:Td/f total:1/d"},
      {"clip_scale", "total:1/d norm:1/f scale:1/f", "max_norm=1"},
      {"record_scalar", "x:1/f index:1/l ring:m/d"},
      {"uniform_draws", "key:4/i values:d/f", "bound=1"},
      {"gradient_noise", "gradient:d/f key:4/i step:1/i sigma:1/f noise:d/f", "mode=3 elements=72"},
      {"concat_rows_fwd", "a:md b:Fd y:Rd", "row_b=9"},
      {"concat_rows_bwd", "dy:Rd da:md/f db:Fd/f", "row_b=9"},
      {"adamw_step", adamw + "scalars:6/f", "lr_multiplier=1 weight_decay=0.1 beta2=0.9 eps=1e-8"},
      {"adamw_update", adamw + "scalars:6/f gradient_scale:1/f average:Fd/f copy:Fd",
       update + " beta2=0.9 eps=1e-8"},
      {"adamw_stochastic_update",
       "gradient:Fd/f master:Fd/f exp_avg:Fd/b exp_avg_sq:Fd/b scalars:8/f gradient_scale:1/f average:Fd/f "
       "copy:Fd",
       update + " beta2=0.9 eps=1e-8 stream=3"},
      {"muon_momentum", "gradient:Fd/f momentum_buffer:Fd/f scalars:3/f direction:Fd", "nesterov=1", 5,
       false},
      {"muon_scaled_momentum",
       "gradient:Fd/f momentum_buffer:Fd/f scalars:3/f direction:Fd gradient_scale:1/f",
       "nesterov=1 row_normalize=1", 5, false},
      {"muon_apply", "direction:Fd master:Fd/f scalars:3/f", "lr_multiplier=1 weight_decay=0.1 scale=0.2", 5,
       false},
      {"muon_update", "direction:Fd master:Fd/f scalars:3/f average:Fd/f copy:Fd", update + " scale=0.2", 5,
       false},
      {"sgd_step", "gradient:Fd/f master:Fd/f momentum_buffer:Fd/f scalars:3/f",
       "lr_multiplier=1 weight_decay=0.1 nesterov=1"},
      {"sgd_update",
       "gradient:Fd/f master:Fd/f momentum_buffer:Fd/f scalars:3/f gradient_scale:1/f average:Fd/f copy:Fd",
       update + " nesterov=1"},
      {"schedule_free_share", "scalars:2/f weight_sum:1/f share:1/f"},
      {"schedule_free_step", "gradient:Fd/f master:Fd/f offset:Fd/f exp_avg_sq:Fd/f share:1/f scalars:2/f",
       "lr_multiplier=1 weight_decay=0.1 beta1=0.9 beta2=0.9 eps=1e-8"},
      {"schedule_free_update",
       "gradient:Fd/f master:Fd/f offset:Fd/f exp_avg_sq:Fd/f share:1/f scalars:2/f gradient_scale:1/f "
       "average:Fd/f copy:Fd",
       update + " beta1=0.9 beta2=0.9 eps=1e-8"},
      {"schedule_free_average", "master:Fd/f offset:Fd/f evaluation:Fd/f", "ratio=0.3"},
  };
  return cases;
}

}  // namespace mulligan::kernel_test
