// Input: a first byte, then with 'f' an artifact file as it is, whose sha256 is put right; with anything else
// the text of its manifest, a line ====, and the bytes of its streams before compression, one after the
// other. The target compresses these as the manifest says, fills in their compressed sizes and seals the
// file: random changes to compressed bytes would never get past the decompressors.
#include <brotli/encode.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/artifact/artifact_file.h"
#include "framework/artifact/artifact_model.h"
#include "framework/config/run_config.h"
#include "tests/fuzz/fuzz_target.h"

namespace mulligan::fuzz {
namespace {

using Json = nlohmann::json;

// The fastest level of each library: the framework's own compress() takes the slowest.
std::string quickly_compressed(const std::string& word, const std::string& bytes) {
  std::string out(2 * bytes.size() + 1024, '\0');
  const auto* in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  auto* to = reinterpret_cast<std::uint8_t*>(out.data());
  std::size_t size = 0;
  if (word == "zlib") {
    uLongf written = out.size();
    require(compress2(to, &written, in, bytes.size(), Z_BEST_SPEED) == Z_OK, "zlib did not compress");
    size = written;
  } else {
    size = out.size();
    require(BrotliEncoderCompress(0, 16, BROTLI_MODE_GENERIC, bytes.size(), in, &size, to) == BROTLI_TRUE,
            "Brotli did not compress");
  }
  out.resize(size);
  return out;
}

// Compresses the streams that the manifest lists and tells it their sizes.
std::string pack_streams(Json& manifest, std::string_view raw) {
  constexpr std::uint64_t longest = 1 << 16;
  std::string packed;
  const auto streams = manifest.find("streams");
  if (streams == manifest.end() || !streams->is_array()) return packed;
  for (Json& stream : *streams) {
    if (!stream.is_object() || !stream["raw_bytes"].is_number_unsigned()) continue;
    const std::uint64_t wanted = std::min(stream["raw_bytes"].get<std::uint64_t>(), longest);
    std::string bytes(raw.substr(0, static_cast<std::size_t>(wanted)));
    raw.remove_prefix(bytes.size());
    bytes.resize(static_cast<std::size_t>(wanted), '\0');
    const std::string part =
        quickly_compressed(stream["compression"].is_string() ? stream["compression"] : Json(""), bytes);
    stream["bytes"] = part.size();
    packed += part;
  }
  return packed;
}

std::string file_of(std::string_view input) {
  std::string text(take_part(input));
  std::string streams(input);
  // Deeply nested text goes to the reader as it is: writing it again here would be a recursion of its depth.
  if (std::ranges::count_if(text, [](char c) { return c == '[' || c == '{'; }) < 1000) {
    Json manifest = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (manifest.is_object()) {
      streams = pack_streams(manifest, input);
      text = manifest.dump();
    }
  }
  return assembled_artifact(quickly_compressed("brotli", text), text.size(), streams);
}

}  // namespace

void artifact(std::string_view input) {
  if (input.empty()) return;
  const bool whole_file = input.front() == 'f';
  input.remove_prefix(1);
  const std::string bytes = whole_file ? sealed_artifact(std::string(input)) : file_of(input);
  const auto read = unless_refused([&] { return parse_artifact(bytes, "fuzz"); });
  if (!read) return;
  std::int64_t elements = 0;
  for (const QuantizedTensor& tensor : read->tensors) elements += tensor.elements();
  if (elements <= 1000) {
    require(parse_artifact(serialize_artifact(*read, Compression::zlib, nullptr, 1), "again") == *read,
            "an artifact does not read back");
  }
  // What scoring does before it takes memory for the model.
  unless_refused([&] {
    require_model(*read, parse_saved_config(read->configuration, "fuzz").config.model, "fuzz");
    return true;
  });
}

}  // namespace mulligan::fuzz
