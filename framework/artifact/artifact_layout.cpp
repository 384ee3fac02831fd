#include "framework/artifact/artifact_layout.h"

#include <fmt/format.h>

#include <stdexcept>

#include "framework/artifact/byte_layout.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

bool has_codes(const QuantizedTensor& tensor) {
  return tensor.format == TensorFormat::integer || tensor.format == TensorFormat::int8_row;
}

std::vector<StreamKind> all_kinds() {
  std::vector<StreamKind> kinds;
  for (int bits = 2; bits <= 8; ++bits) {
    std::vector<std::string> layouts{"bytes"};
    if (bits < 8) layouts.emplace_back("packed");
    kinds.push_back({fmt::format("codes{}", bits), 1, bits, std::move(layouts)});
  }
  kinds.push_back({"scales", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"fp16", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"bf16", 2, 16, {"bytes", "shuffled"}});
  kinds.push_back({"fp32", 4, 32, {"bytes", "shuffled"}});
  return kinds;
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

std::span<const StreamKind> stream_kinds() {
  static const std::vector<StreamKind> kinds = all_kinds();
  return kinds;
}

std::uint64_t stream_elements(const QuantizedTensor& tensor, const StreamKind& kind) {
  const auto elements = static_cast<std::uint64_t>(tensor.elements());
  if (kind.content.starts_with("codes")) return has_codes(tensor) && tensor.bits == kind.bits ? elements : 0;
  if (kind.content == "scales")
    return has_codes(tensor) ? elements / static_cast<std::uint64_t>(tensor.columns()) : 0;
  return format_word(tensor.format) == kind.content ? elements : 0;
}

std::string_view stream_part(const QuantizedTensor& tensor, const StreamKind& kind) {
  if (stream_elements(tensor, kind) == 0) return {};
  if (kind.content.starts_with("codes")) {
    return {reinterpret_cast<const char*>(tensor.codes.data()), tensor.codes.size()};
  }
  if (kind.content == "scales") {
    return {reinterpret_cast<const char*>(tensor.scales.data()),
            tensor.scales.size() * sizeof(std::uint16_t)};
  }
  return tensor.values;
}

void set_stream_part(QuantizedTensor& tensor, const StreamKind& kind, std::string_view bytes) {
  if (kind.content.starts_with("codes")) {
    const auto* codes = reinterpret_cast<const std::int8_t*>(bytes.data());
    tensor.codes.assign(codes, codes + bytes.size());
  } else if (kind.content == "scales") {
    tensor.scales.resize(bytes.size() / sizeof(std::uint16_t));
    bytes.copy(reinterpret_cast<char*>(tensor.scales.data()), bytes.size());
  } else {
    tensor.values = bytes;
  }
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
