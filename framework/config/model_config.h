// Values of the keys that elements of the model declare for themselves (framework/config/model_elements.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/config/value.h"
#include "framework/config/words.h"

namespace mulligan {

// By name below [model]: "smear_gate.window". What is absent has its default, which leaves an element off.
using ElementSettings = std::map<std::string, ConfigValue, std::less<>>;

// The [model] section: shape and switches of the language model.
//
// One struct drives the parameter list, the graph builder, the parameter count and the dry run. Symbols as in
// the architecture page: d = width, H = heads, Hkv = kv_heads, dh = head_width, V = vocabulary, L = layers.

// Forward passes: framework/model/forward.cpp, framework/model/qwen2 and framework/model/modded.
enum class ModelFamily { record, qwen2, modded };
template <>
inline constexpr auto config_words<ModelFamily> = std::array{"record", "qwen2", "modded"};

// bf16 repeats a property of the published record script.
enum class RopeTable { fp32, bf16 };
template <>
inline constexpr auto config_words<RopeTable> = std::array{"fp32", "bf16"};

// Lane 1 is the MLP's, lane 0 that of attention.
enum class FinalLane { mean, mlp, attention };
template <>
inline constexpr auto config_words<FinalLane> = std::array{"mean", "mlp", "attention"};

// The order in which layers run (model/parameters.h): each once, or with the repeats of [model.loop].
enum class LayerOrderKind { plain, looped };
template <>
inline constexpr auto config_words<LayerOrderKind> = std::array{"plain", "looped"};

enum class RopeForm { geometric, half_truncated };
template <>
inline constexpr auto config_words<RopeForm> = std::array{"geometric", "half_truncated"};

// [model.rope] Rotary position embedding on the first `dims` of each head's dh dimensions; pairs are
// (j, j + dims/2).
struct RopeConfig {
  int64_t dims = 0;  // even, <= head_width; 0 in the file = head_width (resolve_model_defaults fills it in)
  double base = 1e4;
  RopeForm form = RopeForm::geometric;
  RopeTable table = RopeTable::fp32;
};

// [model.loop] Depth recurrence: physical layers first..last (inclusive) run 1 + extra_passes times.
// The execution order is 0..first-1, (first..last) x (1 + extra_passes), last+1..L-1.
struct LoopConfig {
  int64_t first = 0;
  int64_t last = 0;
  int64_t extra_passes = 0;     // 0: first and last are ignored
  double start_fraction = 0.0;  // of the seconds, or of the steps without a time budget
};

// [model.lanes] Two parallel lanes, one read by attention and one by the MLP.
struct LanesConfig {
  int64_t parallel_start = 0;  // from the first decoder entry whose physical layer is >= this; 0 = off
  FinalLane final_lane = FinalLane::mean;
  double residual_init = 1.1;  // what each lane's own weight starts at
};

// The law of a drawn initial value, which `scale` belongs to.
enum class InitialLaw {
  constant,           // scale
  normal,             // standard deviation scale
  normal_by_inputs,   // standard deviation scale / sqrt(inputs)
  uniform,            // between -scale and scale
  uniform_by_inputs,  // between -scale / sqrt(inputs) and scale / sqrt(inputs)
  signs,              // 1 + scale or 1 - scale at random, alike in all parameters of a layer
};
template <>
inline constexpr auto config_words<InitialLaw> =
    std::array{"constant", "normal", "normal_by_inputs", "uniform", "uniform_by_inputs", "signs"};

// One row of [[init.values]].
struct InitialValuesRow {
  std::string match;  // glob over parameter names, as in [[parameters]]
  InitialLaw law = InitialLaw::constant;
  double scale = 0.0;
  int64_t balanced_from = -1;  // with `signs`: the layer from which on pairs of layers balance; -1: none
  Origin origin;
};

// [init] Where the weights at the start of training come from.
struct InitConfig {
  std::string from;           // weights file, or folder with model.safetensors; empty: drawn with run.seed
  std::string expect_sha256;  // of that file, lower-case hexadecimal; empty: any
  // Values that are drawn otherwise than the family does: the first row that matches a parameter.
  std::vector<InitialValuesRow> values;
};

// [model]
struct ModelConfig {
  ModelFamily family = ModelFamily::record;
  int64_t vocabulary = 0;           // V, 2..262144; token shards hold ids below 65536
  int64_t layers = 0;               // L, physical layers
  int64_t width = 0;                // d
  int64_t heads = 0;                // H
  int64_t kv_heads = 0;             // Hkv, divides H; 0 in the file = heads
  int64_t head_width = 0;           // dh, even; 0 in the file = width / heads (which must divide)
  int64_t mlp_hidden = 0;           // hidden units of the MLP; 0 in the file = 4 * width
  double mlp_negative_slope = 0.5;  // s of the MLP's activation (u > 0 ? u : s*u)^2
  bool tied_head = true;            // the output head is the token embedding
  double softcap = 30.0;            // c in logits = c*tanh(z/c); 0 = off
  double attention_scale = 0.0;     // factor on q.k before the softmax; 0 = 1 / sqrt(head_width)
  double norm_eps = 0.0;            // eps of every RMS norm; 0 = machine epsilon of fp32, qwen2: 1e-6
  bool ln_scale = true;             // multiply normed block inputs by 1/sqrt(physical layer + 1)
  bool residual_mix = true;         // block input = mix0*x + mix1*x0 with learned mix, start (1, 0)
  bool qk_norm = true;              // RMS norm of q and k over dh
  double q_gain = 5.0;              // initial per-head gain on q after RoPE; 0 = no gain parameter (gain 1)
  int64_t xsa_last_layers = -1;     // number of last layers with XSA; -1 in the file = all, 0 = off
  bool attention_gate = true;       // o_h *= sigmoid(<n, attn_gate_w[h]>)
  bool skip_weights = true;         // encoder-decoder skip connections, weights start at 1
  bool skip_gates = true;           // gate of the skip merge (needs skip_weights), start at 0
  double embedding_init_std = 0.005;
  RopeConfig rope;
  LoopConfig loop;
  LanesConfig lanes;
  ElementSettings elements;  // keys that elements of the model declare for themselves
};

// Replaces the "derive it" values (kv_heads 0, head_width 0, mlp_hidden 0, rope.dims 0, xsa_last_layers -1)
// by the numbers they stand for. load_run_config has done it already; only code that fills a ModelConfig by
// hand, such as a test, calls it. Idempotent. A family's absent parts are switched off: qwen2 has no softcap,
// residual mix, norm of q and k, gains, XSA, gates, skips, repeats or lanes; modded has none of these but the
// norm of q and k, a head of its own, and an embedding of standard deviation 1.
void resolve_model_defaults(ModelConfig& model);

// In which a model is scored, quantised and adapted: looped where it has repeats.
inline LayerOrderKind scored_order(const ModelConfig& model) {
  return model.loop.extra_passes > 0 ? LayerOrderKind::looped : LayerOrderKind::plain;
}

// Reads a key of an element, by its name below [model]. Leaves `value` as it is where the key is not set.
template <typename T>
void read_element(const ModelConfig& model, std::string_view name, T& value) {
  const auto set = model.elements.find(name);
  if (set == model.elements.end()) return;
  if constexpr (std::is_enum_v<T>) {
    value = of_word<T>(set->second.string()).value_or(value);
  } else {
    value = set->second.as<T>();
  }
}

}  // namespace mulligan
