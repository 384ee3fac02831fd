#include "framework/artifact/artifact_layout.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "framework/artifact/role_streams.h"
#include "framework/core/sha256.h"

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

std::vector<StreamKind> all_kinds(CodeStreams streams) {
  std::vector<StreamKind> kinds;
  if (streams != CodeStreams::width) {
    kinds.push_back({"orders", 2, 16, "shuffled"});
    for (int role = 0; role < code_role_count; ++role) {
      const auto word = code_role_word(static_cast<CodeRole>(role));
      if (has_own_stream(static_cast<CodeRole>(role))) kinds.push_back({std::string(word)});
    }
  }
  for (int bits = 2; bits <= 8; ++bits)
    kinds.push_back({fmt::format("codes{}", bits), 1, bits, bits < 8 ? "packed" : "bytes", true});
  for (const char* content : {"protected_codes", "correction_codes"})
    kinds.push_back({content, 1, 8, "bytes", true});
  for (const char* content : {"scales", "protected_scales", "correction_scales", "fp16", "bf16"})
    kinds.push_back({content, 2, 16, "shuffled"});
  kinds.push_back({"fp32", 4, 32, "shuffled"});
  for (StreamKind& kind : kinds) kind.streams = streams;
  return kinds;
}

std::int64_t coded_columns(const QuantizedTensor& tensor) {
  return tensor.columns() - tensor.protected_columns.columns();
}

// Whether the stream is that of the tensor's role, where each matrix is transposed.
bool transposes(const QuantizedTensor& tensor, const StreamKind& kind) {
  return kind.content == code_role_word(code_role(tensor.name));
}

// Calls act(numbers, how many there are) for each list of numbers that the tensor has in the stream, in their order.
template <typename Tensor, typename Act>
void for_numbers(Tensor& tensor, const StreamKind& kind, Act&& act) {
  auto& fine = tensor.protected_columns;
  auto& correction = tensor.correction;
  const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
  const std::int64_t left = rows * correction.rank, right = correction.rank * columns;
  const bool own = by_role(tensor, kind.streams);
  if (kind.content.starts_with("codes")) {
    if (!own && tensor.bits == kind.bits) act(tensor.codes, rows * coded_columns(tensor));
  } else if (kind.content == "orders") {
    if (own && coded_columns(tensor) > 0 && orders_rows(kind.streams, code_role(tensor.name)))
      act(tensor.row_order, rows);
  } else if (transposes(tensor, kind)) {
    if (own) act(tensor.codes, rows * coded_columns(tensor));
  } else if (kind.content == "protected_codes") {
    act(fine.codes, rows * fine.columns());
  } else if (kind.content == "correction_codes") {
    act(correction.left, left);
    act(correction.right, right);
  } else if (kind.content == "scales") {
    if (tensor.bits > 0) act(tensor.scales, rows);
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

std::span<const StreamKind> stream_kinds(CodeStreams streams) {
  static const std::array<std::vector<StreamKind>, 4> kinds = {
      all_kinds(CodeStreams::width), all_kinds(CodeStreams::role), all_kinds(CodeStreams::role_ordered),
      all_kinds(CodeStreams::role_all_ordered)};
  return kinds[static_cast<std::size_t>(streams)];
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
  if (bytes.empty() || !transposes(tensor, kind)) return bytes;
  return transposed_codes(tensor.codes, coded_columns(tensor), tensor.row_order);
}

void set_stream_part(QuantizedTensor& tensor, const StreamKind& kind, std::string_view bytes) {
  if (transposes(tensor, kind)) {
    tensor.codes = untransposed_codes(bytes, coded_columns(tensor), tensor.row_order);
    return;
  }
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
      matrices.push_back({rows, coded_columns(tensor), static_cast<int>(code_role(tensor.name))});
    }
  }
  return matrices;
}

namespace {

constexpr std::string_view shuffle_mark = "BSHF";

// The mark, the stride as a byte, then the bytes at 0, s, 2s, ..., those at 1, s+1, ..., and so on: equal places of
// neighbouring elements come together. What is shorter than the stride stays as it is, without the mark. (The
// format of the record's script.) stride: 1 to 255.
std::string shuffle_bytes(std::string_view bytes, int stride) {
  const auto step = static_cast<std::size_t>(stride);
  if (bytes.size() < step) return std::string(bytes);
  std::string out(shuffle_mark);
  out.reserve(bytes.size() + shuffle_mark.size() + 1);
  out += static_cast<char>(stride);
  for (std::size_t phase = 0; phase < step; ++phase) {
    for (std::size_t i = phase; i < bytes.size(); i += step) out += bytes[i];
  }
  return out;
}

std::string unshuffle_bytes(std::string_view shuffled, int stride) {
  const auto step = static_cast<std::size_t>(stride);
  if (shuffled.size() < step) return std::string(shuffled);
  if (!shuffled.starts_with(shuffle_mark) || shuffled.size() < shuffle_mark.size() + 1 + step ||
      static_cast<unsigned char>(shuffled[shuffle_mark.size()]) != step) {
    throw std::runtime_error(fmt::format("has no byte-shuffle mark of stride {}", stride));
  }
  shuffled.remove_prefix(shuffle_mark.size() + 1);
  std::string out(shuffled.size(), '\0');
  std::size_t next = 0;
  for (std::size_t phase = 0; phase < step; ++phase) {
    for (std::size_t i = phase; i < out.size(); i += step) out[i] = shuffled[next++];
  }
  return out;
}

}  // namespace

std::uint64_t packed_bytes(std::uint64_t count, int bits) {
  const auto width = static_cast<std::uint64_t>(bits);
  return count / 8 * width + (count % 8 * width + 7) / 8;
}

std::string pack_integers(std::string_view codes, int bits) {
  std::string out;
  out.reserve(static_cast<std::size_t>(packed_bytes(codes.size(), bits)));
  const unsigned mask = (1U << bits) - 1U;
  unsigned pending = 0;
  int filled = 0;
  for (const char code : codes) {
    pending |= (static_cast<unsigned>(code) & mask) << filled;
    filled += bits;
    for (; filled >= 8; filled -= 8) {
      out += static_cast<char>(pending & 0xFFU);
      pending >>= 8;
    }
  }
  if (filled > 0) out += static_cast<char>(pending & 0xFFU);
  return out;
}

std::string unpack_integers(std::string_view packed, std::uint64_t count, int bits) {
  if (packed.size() != packed_bytes(count, bits)) {
    throw std::runtime_error(fmt::format("has {} bytes where {} integers of {} bits take {}", packed.size(),
                                         count, bits, packed_bytes(count, bits)));
  }
  std::string codes;
  codes.reserve(count);
  const unsigned mask = (1U << bits) - 1U;
  const unsigned sign = 1U << (bits - 1);
  unsigned pending = 0;
  int filled = 0;
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (filled < bits) {
      pending |= static_cast<unsigned>(static_cast<unsigned char>(packed[next++])) << filled;
      filled += 8;
    }
    const unsigned value = pending & mask;
    codes += static_cast<char>(static_cast<int>(value ^ sign) - static_cast<int>(sign));
    pending >>= bits;
    filled -= bits;
  }
  return codes;
}

std::string encode_layout(std::string_view bytes, const StreamKind& kind, std::string_view layout) {
  if (layout == "packed") return pack_integers(bytes, kind.bits);
  if (layout == "shuffled") return shuffle_bytes(bytes, kind.element_bytes);
  return std::string(bytes);
}

std::string decode_layout(std::string encoded, const StreamKind& kind, std::string_view layout,
                          std::uint64_t elements) {
  if (layout == "packed") return unpack_integers(encoded, elements, kind.bits);
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
