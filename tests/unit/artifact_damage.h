// Artifacts with something wrong in them, and how reading refuses them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "framework/artifact/artifact_file.h"
#include "framework/artifact/artifact_layout.h"
#include "framework/artifact/compression.h"
#include "tests/support/sentence.h"

namespace mulligan {

// The file with its manifest edited as text, and everything that depends on it put right.
inline std::string forged(const std::string& bytes, const std::function<void(std::string&)>& edit) {
  const auto number = [&](std::size_t offset) {
    std::uint32_t value = 0;
    bytes.copy(reinterpret_cast<char*>(&value), sizeof value, offset);
    return value;
  };
  const std::uint32_t packed = number(artifact_manifest_offset);
  std::string manifest =
      decompress(Compression::brotli, std::string_view(bytes).substr(artifact_header_bytes, packed),
                 number(artifact_manifest_raw_offset));
  edit(manifest);
  return assembled_artifact(compress(Compression::brotli, manifest), manifest.size(),
                            std::string_view(bytes).substr(artifact_header_bytes + packed));
}

// The sentence of the data_error that reading gives.
inline std::string artifact_refusal(const std::string& bytes, std::uint64_t limit = std::uint64_t{1} << 20) {
  return sentence_of(ExitCode::bad_data, [&] { parse_artifact(bytes, "x.mulligan", limit); });
}

}  // namespace mulligan
