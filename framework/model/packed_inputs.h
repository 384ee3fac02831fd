// The inputs of a forward pass over a packed row, as persistent tensors "<prefix>/tokens",
// "<prefix>/targets", "<prefix>/cu_seqlens", "<prefix>/rope_cos" and "<prefix>/rope_sin".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph/tensor_store.h"
#include "framework/model/forward.h"

namespace mulligan {

struct PackedInputs {
  ForwardInputs forward;
  Value targets;  // [T] i32
};

// Number of entries of cu_seqlens that suffices for any row of `tokens` tokens, even one with one-token segments.
std::int64_t segment_capacity(std::int64_t tokens);

// Declares the inputs of a row of `tokens` tokens with rotary positions 0..positions-1.
PackedInputs declare_packed_inputs(Graph& graph, std::string_view prefix, const ModelConfig& model,
                                   std::int64_t tokens, std::int64_t positions);

// Uploads rows into inputs that exist in a store. It owns the padded boundaries; upload() does not allocate.
class PackedInputWriter {
 public:
  PackedInputWriter(std::string_view prefix, std::int64_t tokens);

  // Uploads the rotary tables; once, after the tensors were made.
  void upload_rope(TensorStore& store, const ModelConfig& model, std::int64_t positions) const;
  // tokens, targets: [T]; cu_seqlens: at most segment_capacity(T) boundaries, non-decreasing from 0 to T.
  void upload(TensorStore& store, std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
              std::span<const std::int32_t> cu_seqlens);
  // Uploads the boundaries alone.
  void upload_boundaries(TensorStore& store, std::span<const std::int32_t> cu_seqlens);

 private:
  std::string tokens_, targets_, cu_seqlens_, rope_cos_, rope_sin_;  // tensor names
  std::vector<std::int32_t> boundaries_;
  std::int32_t row_tokens_;
};

}  // namespace mulligan
