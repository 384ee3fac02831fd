#include "framework/model/packed_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "framework/model/rope.h"

namespace mulligan {
namespace {

// Boundaries come in multiples of this, as the loader pads them.
constexpr std::int64_t boundary_bucket = 64;

std::string tensor(std::string_view prefix, std::string_view name) {
  return fmt::format("{}/{}", prefix, name);
}

}  // namespace

std::int64_t segment_capacity(std::int64_t tokens) {
  return (tokens + 1 + boundary_bucket - 1) / boundary_bucket * boundary_bucket;
}

PackedInputs declare_packed_inputs(Graph& graph, std::string_view prefix, const ModelConfig& model,
                                   std::int64_t tokens, std::int64_t positions) {
  const TensorType per_token(MLG_I32, {tokens});
  const TensorType table(MLG_F32, {positions, model.rope.dims / 2});
  PackedInputs inputs;
  inputs.forward.tokens = graph.external(tensor(prefix, "tokens"), per_token);
  inputs.forward.cu_seqlens =
      graph.external(tensor(prefix, "cu_seqlens"), TensorType(MLG_I32, {segment_capacity(tokens)}));
  inputs.forward.rope_cos = graph.external(tensor(prefix, "rope_cos"), table);
  inputs.forward.rope_sin = graph.external(tensor(prefix, "rope_sin"), table);
  inputs.targets = graph.external(tensor(prefix, "targets"), per_token);
  return inputs;
}

PackedInputWriter::PackedInputWriter(std::string_view prefix, std::int64_t tokens)
    : tokens_(tensor(prefix, "tokens")),
      targets_(tensor(prefix, "targets")),
      cu_seqlens_(tensor(prefix, "cu_seqlens")),
      rope_cos_(tensor(prefix, "rope_cos")),
      rope_sin_(tensor(prefix, "rope_sin")),
      boundaries_(static_cast<std::size_t>(segment_capacity(tokens))),
      row_tokens_(static_cast<std::int32_t>(tokens)) {}

void PackedInputWriter::upload_rope(TensorStore& store, const ModelConfig& model,
                                    std::int64_t positions) const {
  const RopeTables tables = rope_tables(model, positions);
  store.upload(rope_cos_, tables.cos);
  store.upload(rope_sin_, tables.sin);
}

void PackedInputWriter::upload(TensorStore& store, std::span<const std::int32_t> tokens,
                               std::span<const std::int32_t> targets,
                               std::span<const std::int32_t> cu_seqlens) {
  store.upload(tokens_, std::as_bytes(tokens));
  store.upload(targets_, std::as_bytes(targets));
  upload_boundaries(store, cu_seqlens);
}

void PackedInputWriter::upload_boundaries(TensorStore& store, std::span<const std::int32_t> cu_seqlens) {
  if (cu_seqlens.size() > boundaries_.size()) {
    throw std::logic_error("PackedInputWriter: more segment boundaries than a row can have");
  }
  // Empty segments at the end of the row fill the tensor up.
  const auto rest = std::copy(cu_seqlens.begin(), cu_seqlens.end(), boundaries_.begin());
  std::fill(rest, boundaries_.end(), row_tokens_);
  store.upload(cu_seqlens_, boundaries_);
}

}  // namespace mulligan
