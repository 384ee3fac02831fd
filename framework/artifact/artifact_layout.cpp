#include "framework/artifact/artifact_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "framework/core/sha256.h"

namespace mulligan {
namespace {

// Matrices of one role share the counts of the adaptive coder. The order is part of the format.
constexpr std::array<std::string_view, 7> role_suffixes = {
    "tok_emb.weight",    ".attn.c_k.weight", ".attn.c_q.weight", ".attn.c_v.weight",
    ".attn.proj.weight", ".mlp.fc.weight",   ".mlp.proj.weight"};

int code_role(std::string_view name) {
  return static_cast<int>(
      std::ranges::find_if(role_suffixes, [&](auto suffix) { return name.ends_with(suffix); }) -
      role_suffixes.begin());
}

bool has_codes(const QuantizedTensor& tensor) {
  return tensor.format == TensorFormat::integer || tensor.format == TensorFormat::int8_row;
}

std::vector<StreamKind> all_kinds() {
  std::vector<StreamKind> kinds;
  for (int bits = 2; bits <= 8; ++bits)
    kinds.push_back({fmt::format("codes{}", bits), 1, bits, {"bytes"}, true});
  for (const char* content : {"protected_codes", "correction_codes"})
    kinds.push_back({content, 1, 8, {"bytes"}, true});
  for (const char* content : {"scales", "protected_scales", "correction_scales", "fp16", "bf16"})
    kinds.push_back({content, 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"fp32", 4, 32, {"bytes", "shuffled"}});
  return kinds;
}

std::int64_t coded_columns(const QuantizedTensor& tensor) {
  return tensor.columns() - tensor.protected_columns.columns();
}

// Calls act(numbers, how many there are) for each list of numbers that the tensor has in the stream, in their order.
template <typename Tensor, typename Act>
void for_numbers(Tensor& tensor, const StreamKind& kind, Act&& act) {
  auto& fine = tensor.protected_columns;
  auto& correction = tensor.correction;
  const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
  const std::int64_t left = rows * correction.rank, right = correction.rank * columns;
  if (kind.content.starts_with("codes")) {
    if (has_codes(tensor) && tensor.bits == kind.bits) act(tensor.codes, rows * coded_columns(tensor));
  } else if (kind.content == "protected_codes") {
    act(fine.codes, rows * fine.columns());
  } else if (kind.content == "correction_codes") {
    act(correction.left, left);
    act(correction.right, right);
  } else if (kind.content == "scales") {
    if (has_codes(tensor)) act(tensor.scales, rows);
  } else if (kind.content == "protected_scales") {
    if (fine.columns() > 0) act(fine.scales, rows);
  } else if (kind.content == "correction_scales") {
    if (correction.rank == 0) return;
    act(correction.left_scales, group_count(left, correction.left_group));
    act(correction.right_scales, group_count(right, correction.right_group));
  } else if (kind.content == word_of(tensor.format)) {
    act(tensor.values, tensor.elements());
  }
}

}  // namespace

std::string artifact_hash(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.substr(0, artifact_hash_offset));
  hash.update(bytes.substr(artifact_header_bytes));
  return hash.digest();
}

std::span<const StreamKind> stream_kinds() {
  static const std::vector<StreamKind> kinds = all_kinds();
  return kinds;
}

std::uint64_t stream_elements(const QuantizedTensor& tensor, const StreamKind& kind) {
  std::uint64_t elements = 0;
  for_numbers(tensor, kind,
              [&](const auto&, std::int64_t count) { elements += static_cast<std::uint64_t>(count); });
  return elements;
}

std::string stream_part(const QuantizedTensor& tensor, const StreamKind& kind) {
  std::string bytes;
  for_numbers(tensor, kind, [&](const auto& numbers, std::int64_t) {
    bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]);
  });
  return bytes;
}

void set_stream_part(QuantizedTensor& tensor, const StreamKind& kind, std::string_view bytes) {
  for_numbers(tensor, kind, [&](auto& numbers, std::int64_t count) {
    const auto size = static_cast<std::size_t>(count) * static_cast<std::size_t>(kind.element_bytes);
    numbers.resize(size / sizeof numbers[0]);
    bytes.copy(reinterpret_cast<char*>(numbers.data()), size);
    bytes.remove_prefix(size);
  });
}

std::vector<CodeMatrix> stream_matrices(std::span<const QuantizedTensor> tensors, const StreamKind& kind) {
  std::vector<CodeMatrix> matrices;
  for (const QuantizedTensor& tensor : tensors) {
    if (stream_elements(tensor, kind) == 0) continue;
    const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
    if (kind.content == "protected_codes") {
      matrices.push_back({rows, tensor.protected_columns.columns(), 0});
    } else if (kind.content == "correction_codes") {
      matrices.push_back({rows, tensor.correction.rank, 0});
      matrices.push_back({tensor.correction.rank, columns, 1});
    } else {
      matrices.push_back({rows, coded_columns(tensor), code_role(tensor.name)});
    }
  }
  return matrices;
}

std::uint64_t layout_bytes(std::uint64_t elements, const StreamKind& kind, std::string_view layout) {
  const auto width = static_cast<std::uint64_t>(kind.element_bytes);
  if (layout == "shuffled") return elements * width + 5;  // the mark and the stride
  return elements * width;
}

}  // namespace mulligan
