// The parameters of the model: names, shapes, initial values, and how the forward pass uses them.
//
// Names and bank layouts are those of the reference script, so that its checkpoints and the fixtures of the tests map one to
// one.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"

namespace mulligan {

enum class Initial {
  zeros,
  constant,      // `value`
  normal,        // mean 0, standard deviation `value`
  uniform,       // between -`value` and `value`
  signs,         // 1 + `value` or 1 - `value` at random, by LayerSigns
  orthogonal,    // each [rows, columns] matrix semi-orthogonal (gain 1)
  residual_mix,  // [2, d]: ones, then zeros
};

// Random signs of a layer's channels, the same in every parameter that uses them.
struct LayerSigns {
  std::int64_t layer = 0;
  std::int64_t head_width = 0;  // channels of a head, which divides the parameter's elements
  // From this layer on, layers form pairs. Of n fair coins for each head, let k be the number of plus signs. The first layer
  // of a pair has round(n/2 + (k - n/2)/2) plus signs in that head, and the second has the other n minus that number, each in
  // a random order of its own. -1: every sign is a fair coin.
  std::int64_t balanced_from = -1;
};

// Part of a bank along its first dimension with an initial value of its own.
struct InitialPart {
  std::int64_t begin = 0, end = 0;  // entries of the first dimension
  Initial kind = Initial::zeros;
  double value = 0;
  LayerSigns signs = {};
};

struct ParameterSpec {
  std::string name;
  TensorType type;  // f32: the shape; the master dtype is chosen by the parameter table
  std::vector<InitialPart> initial;
  bool matrix = false;  // enters matmuls (or the embedding gather) in the compute dtype
  bool projection =
      false;  // a matrix of a block's q, k, v, o, up (and its gate) or down: not embedding, head,
              // or gates of heads
  std::int64_t inputs = 0;  // of the matrix, or of the matrix that the bias belongs to; 0: the last dimension
};

// A parameter whose elements all have one law.
ParameterSpec one_law(std::string name, const TensorType& type, Initial kind, double value, bool matrix,
                      bool projection = false);

// All parameters of `model` in their canonical order.
std::vector<ParameterSpec> model_parameters(const ModelConfig& model);

// Elements of all parameters together; 35,989,658 for the record's configuration.
std::int64_t parameter_count(const std::vector<ParameterSpec>& parameters);

// The linear layers whose inputs and outputs taps can access (taps.h).
enum class TapKind { q, k, v, attention_output, mlp_up, mlp_down, head };

// A tap site without its execution slot: a looped layer has one input distribution for all its passes.
struct TapPoint {
  TapKind kind = TapKind::q;
  std::int64_t layer = -1;  // physical; -1 for the head
  auto operator<=>(const TapPoint&) const = default;
};

// A matrix of a bank: its name, and the tap at which its linear layer reads its input.
struct BankMatrix {
  std::string name;  // "blocks.3.attn.c_q.weight"
  TapPoint input;
};
// The matrices of a bank in the order of its entries; none for any other parameter.
std::vector<BankMatrix> bank_matrices(const ParameterSpec& parameter);

// "blocks.3.attn.q_gain" for (3, "attn.q_gain").
std::string block_parameter(std::int64_t layer, std::string_view name);

// The token embedding [V, d], and the matrix that makes logits, [V, d]. With a tied head they are the same.
const char* embedding_parameter(const ModelConfig& model);
const char* head_parameter(const ModelConfig& model);

struct LayerOrder {
  std::vector<std::int64_t> encoder;  // physical layers; each output is pushed on the skip stack
  // physical layers; entry j pops one while j < skip_rows and the stack holds any
  std::vector<std::int64_t> decoder;
};

// Plain: 0..L-1 cut at L/2. Looped: 0..first-1, (first..last) x (1 + extra_passes), last+1..L-1, cut at half
// its length (rounded down); the same as plain when extra_passes is 0.
LayerOrder layer_order(const ModelConfig& model, LayerOrderKind kind);

// Rows of skip_weights and skip_gates: min(#encoder, #decoder) of the looped order, used or not.
std::int64_t skip_rows(const ModelConfig& model);

}  // namespace mulligan
