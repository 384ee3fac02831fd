// Offsets of the artifact file's header, little-endian; docs/artifact.md has the whole format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/artifact/code_coder.h"
#include "framework/artifact/quantized_tensor.h"

namespace mulligan {

inline constexpr std::string_view artifact_magic = "MULLIGAN";
inline constexpr std::size_t artifact_version_offset = 8;        // u32
inline constexpr std::size_t artifact_manifest_offset = 12;      // u32: bytes of the manifest in the file
inline constexpr std::size_t artifact_manifest_raw_offset = 16;  // u32: its bytes decompressed
inline constexpr std::size_t artifact_hash_offset = 20;  // 32 bytes: sha256 of all other bytes of the file
inline constexpr std::size_t artifact_header_bytes = 52;

// Groups of `group` elements that `count` elements make; the last one may be shorter.
constexpr std::int64_t group_count(std::int64_t count, std::int64_t group) {
  return count / group + (count % group != 0 ? 1 : 0);
}

// The sha256 that belongs at artifact_hash_offset, as 32 bytes. Precondition: at least a header.
std::string artifact_hash(std::string_view bytes);

// What a tensor puts into a stream, and how a stream may be laid out. The streams of an artifact are those
// with any bytes, in this order.
struct StreamKind {
  std::string content;
  int element_bytes = 1;         // as one byte per code, two per fp16, ...
  int bits = 8;                  // codes: their width
  std::string layout = "bytes";  // the layout that may be smaller than "bytes"
  bool matrices = false;         // codes, which may also be in the layout "matrices" (artifact/code_coder.h)
  CodeStreams streams =
      CodeStreams::width;  // of the file; int tensors with a role are in its stream, not in codesN
};
std::span<const StreamKind> stream_kinds(CodeStreams streams);

// Elements that a tensor of this shape and format has in the stream; 0: none.
std::uint64_t stream_elements(const QuantizedTensor& tensor, const StreamKind& kind);
// The tensor's part of the stream in the layout "bytes", and the reverse (`bytes` has the size that belongs).
std::string stream_part(const QuantizedTensor& tensor, const StreamKind& kind);
// set_stream_part throws std::runtime_error with a reason for an order of rows that is none.
void set_stream_part(QuantizedTensor& tensor, const StreamKind& kind, std::string_view bytes);

// The matrices of codes that the tensors have in the stream, for the layout "matrices".
std::vector<CodeMatrix> stream_matrices(std::span<const QuantizedTensor> tensors, const StreamKind& kind);

// Codes of `bits` bits (2 to 8) in two's complement, one after the other, the lowest bit first; the last byte is
// filled with zeros. A code, a byte of `codes`, must lie in [-2^(bits-1), 2^(bits-1)).
std::uint64_t packed_bytes(std::uint64_t count, int bits);
std::string pack_integers(std::string_view codes, int bits);
// The reverse: `count` codes. Throws std::runtime_error like decode_layout when `packed` has another size.
std::string unpack_integers(std::string_view packed, std::uint64_t count, int bits);

// A stream from the layout "bytes" into another and back. decode throws std::runtime_error with a reason that reads on from
// the name of what was read.
std::string encode_layout(std::string_view bytes, const StreamKind& kind, std::string_view layout);
std::string decode_layout(std::string encoded, const StreamKind& kind, std::string_view layout,
                          std::uint64_t elements);

// Bytes that `elements` of the stream take in the layout.
std::uint64_t layout_bytes(std::uint64_t elements, const StreamKind& kind, std::string_view layout);

}  // namespace mulligan
