#include "framework/artifact/artifact_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/artifact/compression.h"
#include "framework/artifact/role_streams.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"

namespace mulligan {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie in memory");

using OrderedJson = nlohmann::ordered_json;

struct Stream : ArtifactStream {
  std::string compressed = {};
};

std::string gather(const Artifact& artifact, const StreamKind& kind) {
  std::string bytes;
  for (const QuantizedTensor& tensor : artifact.tensors) bytes += stream_part(tensor, kind);
  return bytes;
}

// Brotli at its strongest takes minutes for a record's codes, so the layout of a large part is found out
// on a piece.
constexpr std::size_t large_part = std::size_t{4} << 20;
constexpr std::size_t trial_bytes = std::size_t{1} << 20;

std::string_view trial_piece(std::string_view bytes) {
  if (bytes.size() <= large_part) return bytes;
  const std::size_t middle = bytes.size() / 2 / 64 * 64;  // on the boundary of any element
  return bytes.substr(middle, trial_bytes);
}

// A copy whose rows have the orders that the streams want.
Artifact with_row_orders(Artifact artifact, CodeStreams streams, int threads) {
  for (const StreamKind& kind : stream_kinds(streams)) {
    if (kind.content != "orders") continue;
    parallel_for(artifact.tensors.size(), threads, [&](std::size_t i) {
      QuantizedTensor& tensor = artifact.tensors[i];
      const std::uint64_t rows = stream_elements(tensor, kind);
      if (rows == 0) return;
      if (rows > most_ordered_rows) {
        throw run_error(
            "the tensor '{}' has {} rows, but an order of rows names {} at most; take quantize.streams = "
            "\"role\"",
            tensor.name, rows, most_ordered_rows);
      }
      tensor.row_order = neighbour_order(tensor.codes, static_cast<std::int64_t>(tensor.codes.size() / rows));
    });
  }
  return artifact;
}

// The stream in the smallest of its layouts.
Stream compressed_stream(const Artifact& artifact, const StreamKind& kind, Compression compression) {
  const std::string bytes = gather(artifact, kind);
  const auto stream = [&](std::uint64_t raw_bytes, std::string layout, std::string compressed) -> Stream {
    const std::uint64_t stored = compressed.size();
    return {{&kind, std::move(layout), compression, raw_bytes, stored}, std::move(compressed)};
  };
  if (compression == Compression::adaptive) {
    if (kind.matrices) {
      const std::span codes(reinterpret_cast<const std::int8_t*>(bytes.data()), bytes.size());
      return stream(bytes.size(), "matrices", encode_codes(codes, stream_matrices(artifact.tensors, kind)));
    }
    compression = Compression::brotli;
  }
  const auto in_layout = [&](std::string_view part, const std::string& layout) -> Stream {
    const std::string encoded = encode_layout(part, kind, layout);
    return stream(encoded.size(), layout, compress(compression, encoded));
  };
  const std::string_view piece = trial_piece(bytes);
  Stream smallest = in_layout(piece, "bytes");
  if (kind.layout != "bytes") {
    Stream other = in_layout(piece, kind.layout);
    if (other.compressed.size() < smallest.compressed.size()) smallest = std::move(other);
  }
  if (piece.size() < bytes.size()) return in_layout(bytes, smallest.layout);
  return smallest;
}

std::vector<Stream> compress_streams(const Artifact& artifact, Compression compression,
                                     CodeStreams code_streams, int threads) {
  std::vector<Stream> streams;
  for (const StreamKind& kind : stream_kinds(code_streams)) {
    const bool used = std::ranges::any_of(
        artifact.tensors, [&](const QuantizedTensor& tensor) { return stream_elements(tensor, kind) > 0; });
    if (used) streams.push_back({{&kind}});
  }
  parallel_for(streams.size(), threads, [&](std::size_t i) {
    streams[i] = compressed_stream(artifact, *streams[i].kind, compression);
  });
  return streams;
}

// What a tensor's entry says beyond name, shape, format and bits.
void add_choices(const QuantizedTensor& tensor, OrderedJson& entry) {
  const ProtectedColumns& fine = tensor.protected_columns;
  if (!fine.starts.empty())
    entry["protected"] = {{"starts", fine.starts}, {"size", fine.size}, {"bits", fine.bits}};
  const LowRankCorrection& correction = tensor.correction;
  if (correction.rank > 0) {
    entry["correction"] = {{"rank", correction.rank},
                           {"left_group", correction.left_group},
                           {"right_group", correction.right_group}};
  }
}

OrderedJson manifest_of(const Artifact& artifact, std::span<const Stream> streams, CodeStreams code_streams) {
  OrderedJson manifest{{"configuration", artifact.configuration},
                       {"data", to_json(without_shards(artifact.data))},
                       {"streams", OrderedJson::array()},
                       {"tensors", OrderedJson::array()}};
  if (!artifact.evaluation.empty()) manifest["evaluation"] = artifact.evaluation;
  if (code_streams != CodeStreams::width) manifest["code_streams"] = word_of(code_streams);
  for (const Stream& stream : streams) {
    manifest["streams"].push_back({{"content", stream.kind->content},
                                   {"layout", stream.layout},
                                   {"compression", word_of(stream.compression)},
                                   {"raw_bytes", stream.raw_bytes},
                                   {"bytes", stream.bytes}});
  }
  for (const QuantizedTensor& tensor : artifact.tensors) {
    manifest["tensors"].push_back({{"name", tensor.name},
                                   {"shape", tensor.shape},
                                   {"format", word_of(tensor.format)},
                                   {"bits", tensor.bits}});
    add_choices(tensor, manifest["tensors"].back());
  }
  return manifest;
}

// Bits that an ideal order-0 coder of bytes needs, each byte of an element coded for itself.
double entropy_bits(std::string_view bytes, int element_bytes) {
  double bits = 0;
  const auto stride = static_cast<std::size_t>(element_bytes);
  for (std::size_t phase = 0; phase < stride; ++phase) {
    std::array<double, 256> counts{};
    for (std::size_t i = phase; i < bytes.size(); i += stride) ++counts[static_cast<unsigned char>(bytes[i])];
    const double total = static_cast<double>(bytes.size() / stride);
    for (const double count : counts) {
      if (count > 0) bits += count * std::log2(total / count);
    }
  }
  return bits;
}

// Each stream's bytes go to the tensors in it by the entropy of their parts (plus one bit, so that
// nothing is free).
void share_out(const Artifact& artifact, std::span<const Stream> streams, ArtifactSizes& sizes) {
  sizes.tensors.resize(artifact.tensors.size());
  for (const Stream& stream : streams) {
    std::vector<double> bits;
    double total = 0;
    for (const QuantizedTensor& tensor : artifact.tensors) {
      const std::string part = stream_part(tensor, *stream.kind);
      bits.push_back(part.empty() ? 0 : entropy_bits(part, stream.kind->element_bytes) + 1);
      total += bits.back();
    }
    for (std::size_t i = 0; i < bits.size(); ++i) {
      sizes.tensors[i] += bits[i] / total * static_cast<double>(stream.bytes);
    }
    sizes.streams.push_back(stream);
  }
}

}  // namespace

std::string assembled_artifact(std::string_view packed_manifest, std::size_t manifest_bytes,
                               std::string_view parts) {
  std::string bytes(artifact_magic);
  for (const std::size_t number : {std::size_t{artifact_version}, packed_manifest.size(), manifest_bytes}) {
    const auto word = static_cast<std::uint32_t>(number);
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  bytes.resize(artifact_header_bytes);
  bytes += packed_manifest;
  bytes += parts;
  return sealed_artifact(std::move(bytes));
}

std::string sealed_artifact(std::string bytes) {
  if (bytes.size() >= artifact_header_bytes)
    bytes.replace(artifact_hash_offset, artifact_header_bytes - artifact_hash_offset, artifact_hash(bytes));
  return bytes;
}

std::string serialize_artifact(const Artifact& given, Compression compression, ArtifactSizes* sizes,
                               int threads, CodeStreams code_streams) {
  std::optional<Artifact> ordered;
  if (code_streams != CodeStreams::width) ordered = with_row_orders(given, code_streams, threads);
  const Artifact& artifact = ordered ? *ordered : given;
  const std::vector<Stream> streams = compress_streams(artifact, compression, code_streams, threads);
  const std::string manifest = manifest_of(artifact, streams, code_streams).dump();
  std::string parts;
  for (const Stream& stream : streams) parts += stream.compressed;
  std::string bytes = assembled_artifact(compress(Compression::brotli, manifest), manifest.size(), parts);
  if (sizes) {
    *sizes = {};
    share_out(artifact, streams, *sizes);
    sizes->overhead_bytes = bytes.size() - parts.size();
    sizes->total_bytes = bytes.size();
  }
  return bytes;
}

Artifact read_artifact(const std::filesystem::path& path) {
  return parse_artifact(read_file(path), path.string());
}

}  // namespace mulligan
