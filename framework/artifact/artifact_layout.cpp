#include "framework/artifact/artifact_layout.h"

#include <fmt/format.h>

#include <array>

#include "framework/artifact/byte_layout.h"
#include "framework/artifact/role_streams.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

bool has_own_stream(CodeRole role) {
  return role != CodeRole::other;
}

// Whether the tensor's codes are in the stream of its role.
bool by_role(const QuantizedTensor& tensor, CodeStreams streams) {
  return streams != CodeStreams::width && tensor.format == TensorFormat::integer &&
         has_own_stream(code_role(tensor.name));
}

bool has_codes(const QuantizedTensor& tensor) {
  return tensor.format == TensorFormat::integer || tensor.format == TensorFormat::int8_row;
}

std::vector<StreamKind> all_kinds(CodeStreams streams) {
  std::vector<StreamKind> kinds;
  if (streams != CodeStreams::width) {
    kinds.push_back({"orders", 2, 16, {"bytes", "shuffled"}});
    for (int role = 0; role < code_role_count; ++role) {
      const auto word = code_role_word(static_cast<CodeRole>(role));
      if (has_own_stream(static_cast<CodeRole>(role))) kinds.push_back({std::string(word), 1, 8, {"bytes"}});
    }
  }
  for (int bits = 2; bits <= 8; ++bits) {
    std::vector<std::string> layouts{"bytes"};
    if (bits < 8) layouts.emplace_back("packed");
    kinds.push_back({fmt::format("codes{}", bits), 1, bits, std::move(layouts), true});
  }
  kinds.push_back({"protected_codes", 1, 8, {"bytes"}, true});
  kinds.push_back({"correction_codes", 1, 8, {"bytes"}, true});
  kinds.push_back({"scales", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"protected_scales", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"correction_scales", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"fp16", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"bf16", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"fp32", 4, 32, {"bytes", "shuffled"}});
  for (StreamKind& kind : kinds) kind.streams = streams;
  return kinds;
}

// How many groups `count` numbers make, the last one perhaps smaller.
std::int64_t coded_columns(const QuantizedTensor& tensor) {
  return tensor.columns() - tensor.protected_columns.columns();
}

template <typename T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

template <typename T>
void set_numbers(std::vector<T>& numbers, std::string_view bytes) {
  numbers.resize(bytes.size() / sizeof(T));
  bytes.copy(reinterpret_cast<char*>(numbers.data()), bytes.size());
}

}  // namespace

std::string artifact_hash(std::string_view bytes) {
  const std::string hex = sha256_hex(std::string(bytes.substr(0, artifact_hash_offset)) +
                                     std::string(bytes.substr(artifact_header_bytes)));
  std::string hash;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    hash += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return hash;
}

std::span<const StreamKind> stream_kinds(CodeStreams streams) {
  static const std::array<std::vector<StreamKind>, 4> kinds = {
      all_kinds(CodeStreams::width), all_kinds(CodeStreams::role), all_kinds(CodeStreams::role_ordered),
      all_kinds(CodeStreams::role_all_ordered)};
  return kinds[static_cast<std::size_t>(streams)];
}

std::uint64_t stream_elements(const QuantizedTensor& tensor, const StreamKind& kind) {
  const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
  const std::int64_t fine = tensor.protected_columns.columns();
  const LowRankCorrection& correction = tensor.correction;
  const std::int64_t left = rows * correction.rank, right = correction.rank * columns;
  std::int64_t count = 0;
  const bool own = by_role(tensor, kind.streams);
  if (kind.content.starts_with("codes")) {
    count = has_codes(tensor) && !own && tensor.bits == kind.bits ? rows * (columns - fine) : 0;
  } else if (kind.content == "orders") {
    count = own && columns > fine && orders_rows(kind.streams, code_role(tensor.name)) ? rows : 0;
  } else if (kind.content == code_role_word(code_role(tensor.name))) {
    count = own ? rows * (columns - fine) : 0;
  } else if (kind.content == "protected_codes") {
    count = rows * fine;
  } else if (kind.content == "correction_codes") {
    count = left + right;
  } else if (kind.content == "scales") {
    count = has_codes(tensor) ? rows : 0;
  } else if (kind.content == "protected_scales") {
    count = fine > 0 ? rows : 0;
  } else if (kind.content == "correction_scales") {
    count = correction.rank > 0
                ? group_count(left, correction.left_group) + group_count(right, correction.right_group)
                : 0;
  } else if (format_word(tensor.format) == kind.content) {
    count = tensor.elements();
  }
  return static_cast<std::uint64_t>(count);
}

std::string stream_part(const QuantizedTensor& tensor, const StreamKind& kind) {
  const LowRankCorrection& correction = tensor.correction;
  if (stream_elements(tensor, kind) == 0) return {};
  if (kind.content.starts_with("codes")) return bytes_of(tensor.codes);
  if (kind.content == "orders") return bytes_of(tensor.row_order);
  if (kind.content == code_role_word(code_role(tensor.name)))
    return transposed_codes(tensor.codes, coded_columns(tensor), tensor.row_order);
  if (kind.content == "protected_codes") return bytes_of(tensor.protected_columns.codes);
  if (kind.content == "correction_codes") return bytes_of(correction.left) + bytes_of(correction.right);
  if (kind.content == "scales") return bytes_of(tensor.scales);
  if (kind.content == "protected_scales") return bytes_of(tensor.protected_columns.scales);
  if (kind.content == "correction_scales")
    return bytes_of(correction.left_scales) + bytes_of(correction.right_scales);
  return tensor.values;
}

void set_stream_part(QuantizedTensor& tensor, const StreamKind& kind, std::string_view bytes) {
  LowRankCorrection& correction = tensor.correction;
  const std::int64_t rows = tensor.elements() / tensor.columns(), left = rows * correction.rank;
  if (kind.content.starts_with("codes")) {
    set_numbers(tensor.codes, bytes);
  } else if (kind.content == "orders") {
    set_numbers(tensor.row_order, bytes);
  } else if (kind.content == code_role_word(code_role(tensor.name))) {
    tensor.codes = untransposed_codes(bytes, coded_columns(tensor), tensor.row_order);
  } else if (kind.content == "protected_codes") {
    set_numbers(tensor.protected_columns.codes, bytes);
  } else if (kind.content == "correction_codes") {
    set_numbers(correction.left, bytes.substr(0, static_cast<std::size_t>(left)));
    set_numbers(correction.right, bytes.substr(static_cast<std::size_t>(left)));
  } else if (kind.content == "scales") {
    set_numbers(tensor.scales, bytes);
  } else if (kind.content == "protected_scales") {
    set_numbers(tensor.protected_columns.scales, bytes);
  } else if (kind.content == "correction_scales") {
    const auto split = static_cast<std::size_t>(2 * group_count(left, correction.left_group));
    set_numbers(correction.left_scales, bytes.substr(0, split));
    set_numbers(correction.right_scales, bytes.substr(split));
  } else {
    tensor.values = bytes;
  }
}

std::vector<CodeMatrix> stream_matrices(const QuantizedTensor& tensor, const StreamKind& kind) {
  if (!kind.matrices || stream_elements(tensor, kind) == 0) return {};
  const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
  const std::int64_t fine = tensor.protected_columns.columns();
  if (kind.content == "protected_codes") return {{rows, fine, 0}};
  if (kind.content == "correction_codes")
    return {{rows, tensor.correction.rank, 0}, {tensor.correction.rank, columns, 1}};
  return {{rows, columns - fine, static_cast<int>(code_role(tensor.name))}};
}

std::string encode_layout(std::string_view bytes, const StreamKind& kind, std::string_view layout) {
  if (layout == "packed") {
    return pack_integers({reinterpret_cast<const std::int8_t*>(bytes.data()), bytes.size()}, kind.bits);
  }
  if (layout == "shuffled") return shuffle_bytes(bytes, kind.element_bytes);
  return std::string(bytes);
}

std::string decode_layout(std::string encoded, const StreamKind& kind, std::string_view layout,
                          std::uint64_t elements) {
  if (layout == "packed") {
    const std::vector<std::int8_t> codes = unpack_integers(encoded, elements, kind.bits);
    return {reinterpret_cast<const char*>(codes.data()), codes.size()};
  }
  if (layout == "shuffled") return unshuffle_bytes(encoded, kind.element_bytes);
  return encoded;
}

std::uint64_t layout_bytes(std::uint64_t elements, const StreamKind& kind, std::string_view layout) {
  const auto width = static_cast<std::uint64_t>(kind.element_bytes);
  if (layout == "packed") return packed_bytes(elements, kind.bits);
  if (layout == "shuffled") return elements * width + 5;  // the mark and the stride
  return elements * width;
}

}  // namespace mulligan
