// The artifact: everything that scoring starts from, in one file. Format: docs/artifact.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/artifact/artifact_layout.h"
#include "framework/data/data_identity.h"

namespace mulligan {

// Version of the file's layout and of the manifest's keys. Another one is refused.
inline constexpr std::uint32_t artifact_version = 1;

struct Artifact {
  // TOML: the resolved configuration that scoring needs, the model's shape above all
  std::string configuration;
  std::string evaluation;  // write_evaluation_settings(); empty: only this program can score it
  DataIdentity data;       // of the run, without lists of shards; tokenizer "": not known
  std::vector<QuantizedTensor> tensors;
  bool operator==(const Artifact&) const = default;
};

// One compressed run of bytes: the same kind of number of all tensors, one tensor after the other.
struct ArtifactStream {
  const StreamKind* kind = nullptr;  // "codes6", "scales", "fp16", ...
  std::string layout = {};           // "bytes", "packed", "shuffled"
  Compression compression = Compression::brotli;
  std::uint64_t raw_bytes = 0;  // before compression, in that layout
  std::uint64_t bytes = 0;      // in the file
};

// Where the bytes of a file went.
struct ArtifactSizes {
  std::vector<ArtifactStream> streams;
  // Of each tensor: its share of the streams, by the entropy of its numbers. All shares add up to the streams.
  std::vector<double> tensors;
  std::uint64_t overhead_bytes = 0;  // header and manifest
  std::uint64_t total_bytes = 0;     // of the file
};

// The bytes of the file. Every stream is compressed in each of its layouts (of one beyond 4 MiB: a piece of 1
// MiB), and the smallest layout is kept. The result depends on the artifact and the compression library
// alone. `sizes` may be null. threads 0: all cores. streams: width with Compression::adaptive. Throws
// run_error where rows are to be ordered that are more than an order can name.
std::string serialize_artifact(const Artifact& artifact, Compression compression,
                               ArtifactSizes* sizes = nullptr, int threads = 0,
                               CodeStreams streams = CodeStreams::width);

// A file's bytes from its compressed manifest, the manifest's length before that, and its parts.
std::string assembled_artifact(std::string_view packed_manifest, std::size_t manifest_bytes,
                               std::string_view parts);
// The bytes of a file with their sha256 in its header; fewer than a header stay as they are.
std::string sealed_artifact(std::string bytes);

// The reverse of serialize_artifact; bit-identical tensors. `origin` names the file in sentences. Whatever the
// bytes are, the result is an artifact or a data_error: the checksum is compared first, then every size is
// checked before memory is taken for it. No more than `raw_limit` bytes are decompressed, and no more numbers
// than files of that length hold (docs/artifact.md).
Artifact parse_artifact(std::string_view bytes, const std::string& origin,
                        std::uint64_t raw_limit = std::uint64_t{4} << 30);

// Throws data_error for an unreadable file, and like parse_artifact.
Artifact read_artifact(const std::filesystem::path& path);

}  // namespace mulligan
