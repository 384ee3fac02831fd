// parse_artifact: only this code reads bytes of unknown origin. It checks every value
// before use.
#include <fmt/format.h>

#include <mulligan/tensor.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mulligan/half.hpp>
#include <set>

#include "framework/artifact/artifact_file.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/role_streams.h"
#include "framework/core/error.h"
#include "framework/core/parse_json.h"

namespace mulligan {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t largest_manifest = std::uint64_t{4} << 20;
// The limit of numbers per byte keeps a small file from taking gigabytes. Two-bit weights have at most 8.
// The limit does not apply up to always_allowed_numbers, so that weights may for example be all zero.
constexpr std::uint64_t most_numbers_per_byte = 32, always_allowed_numbers = std::uint64_t{32} << 20;
constexpr std::int64_t largest_dim = std::int64_t{1} << 31;
constexpr std::uint64_t most_elements = std::uint64_t{1} << 40;

class ArtifactReader {
 public:
  ArtifactReader(std::string_view bytes, const std::string& origin, std::uint64_t raw_limit)
      : bytes_(bytes), origin_(origin), raw_limit_(raw_limit) {}

  Artifact read() {
    const Json manifest = read_manifest();
    Artifact artifact;
    artifact.configuration = string_of(manifest, "configuration");
    if (manifest.contains("evaluation")) artifact.evaluation = string_of(manifest, "evaluation");
    artifact.data = data_identity_from_json(member(manifest, "data", &Json::is_object, "object"),
                                            "the artifact '" + origin_ + "'");
    if (manifest.contains("code_streams"))
      code_streams_ = word_in<CodeStreams>(manifest, "code_streams", "streams");
    for (const Json& entry : list_of(manifest, "tensors")) artifact.tensors.push_back(read_tensor(entry));
    const std::vector<ArtifactStream> streams = read_streams(list_of(manifest, "streams"), artifact);
    for (const ArtifactStream& stream : streams) fill_tensors(stream, artifact);
    for (QuantizedTensor& tensor : artifact.tensors) {
      tensor.row_order.clear();
      require_sound(tensor);
    }
    return artifact;
  }

 private:
  template <typename... Args>
  Error bad(fmt::format_string<Args...> format, Args&&... args) const {
    return data_error("the artifact '{}' {}; make it again or copy it again", origin_,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  std::uint32_t u32(std::size_t offset) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  std::string_view take(std::uint64_t count, const char* what) {
    if (count > bytes_.size() - position_) {
      throw bad("is truncated: its {} of {} bytes passes the file's end", what, count);
    }
    const std::string_view part = bytes_.substr(position_, static_cast<std::size_t>(count));
    position_ += static_cast<std::size_t>(count);
    return part;
  }

  Json read_manifest() {
    if (bytes_.size() < artifact_header_bytes) {
      throw bad("is truncated: it has {} bytes, fewer than the {} of its header", bytes_.size(),
                artifact_header_bytes);
    }
    if (!bytes_.starts_with(artifact_magic)) {
      throw data_error("'{}' is not an artifact: it does not start with {}", origin_, artifact_magic);
    }
    const std::uint32_t version = u32(artifact_version_offset);
    if (version != artifact_version) {
      throw data_error(
          "the artifact '{}' has format version {}, but this program reads version {} only; make it again "
          "with mulligan quantize",
          origin_, version, artifact_version);
    }
    if (bytes_.substr(artifact_hash_offset, artifact_header_bytes - artifact_hash_offset) !=
        artifact_hash(bytes_)) {
      throw bad("is corrupt or truncated: its bytes do not have the sha256 of its header");
    }
    position_ = artifact_header_bytes;
    const std::string_view packed = take(u32(artifact_manifest_offset), "manifest");
    const std::uint64_t raw = u32(artifact_manifest_raw_offset);
    if (raw > largest_manifest) throw bad("declares a manifest of {} bytes, more than any has", raw);
    Json manifest;
    reading("manifest", [&] { manifest = parse_json(decompress(Compression::brotli, packed, raw)); });
    if (!manifest.is_object()) throw bad("has a manifest that is not a JSON object");
    return manifest;
  }

  template <typename Act>
  void reading(std::string_view part, Act&& act) const {
    try {
      act();
    } catch (const std::runtime_error& error) {
      throw bad("has a part '{}' that {}", part, error.what());
    }
  }

  const Json& member(const Json& object, const char* name, bool (Json::*is)() const noexcept,
                     const char* kind) const {
    const auto found = object.find(name);
    if (found == object.end() || !((*found).*is)()) throw bad("has no {} '{}' in its manifest", kind, name);
    return *found;
  }
  std::string string_of(const Json& object, const char* name) const {
    return member(object, name, &Json::is_string, "text");
  }
  std::uint64_t number_of(const Json& object, const char* name) const {
    return member(object, name, &Json::is_number_unsigned, "whole number");
  }
  const Json& list_of(const Json& object, const char* name) const {
    return member(object, name, &Json::is_array, "list");
  }
  // An enumeration by its word; `what` names it.
  template <typename E>
  E word_in(const Json& object, const char* name, const char* what) const {
    const std::string word = string_of(object, name);
    if (const auto known = of_word<E>(word)) return *known;
    throw bad("has the unknown {} '{}'", what, word);
  }

  QuantizedTensor read_tensor(const Json& entry) {
    QuantizedTensor tensor;
    tensor.name = string_of(entry, "name");
    if (!names_.insert(tensor.name).second) throw bad("has the tensor '{}' twice", tensor.name);
    std::uint64_t elements = 1;
    for (const Json& dim : list_of(entry, "shape")) {
      const std::int64_t size = dim.is_number_unsigned() ? dim.get<std::int64_t>() : 0;
      if (size < 1 || size > largest_dim || tensor.shape.size() == MLG_MAX_RANK) {
        throw bad("has a tensor '{}' whose shape is not a list of at most {} positive numbers", tensor.name,
                  MLG_MAX_RANK);
      }
      tensor.shape.push_back(size);
      if (static_cast<std::uint64_t>(size) > most_elements / elements)
        throw bad("has a tensor '{}' larger than any can be", tensor.name);
      elements *= static_cast<std::uint64_t>(size);
    }
    tensor.format = word_in<TensorFormat>(entry, "format", "format");
    const std::uint64_t bits = number_of(entry, "bits");
    const bool sound = tensor.format == TensorFormat::integer    ? bits >= 2 && bits <= 8
                       : tensor.format == TensorFormat::int8_row ? bits == 8
                                                                 : bits == 0;
    if (!sound)
      throw bad("has a tensor '{}' of format {} with {} bits", tensor.name, word_of(tensor.format), bits);
    tensor.bits = static_cast<int>(bits);
    read_choices(entry, tensor);
    return tensor;
  }

  void read_choices(const Json& entry, QuantizedTensor& tensor) const {
    const auto fine = entry.find("protected"), correction = entry.find("correction");
    if (fine == entry.end() && correction == entry.end()) return;
    if (tensor.format != TensorFormat::integer)
      throw bad("protects or corrects the tensor '{}' of format {}", tensor.name, word_of(tensor.format));
    if (fine != entry.end()) read_protected(*fine, tensor);
    if (correction != entry.end()) read_correction(*correction, tensor);
  }

  void read_protected(const Json& entry, QuantizedTensor& tensor) const {
    ProtectedColumns& fine = tensor.protected_columns;
    const std::uint64_t size = number_of(entry, "size"), bits = number_of(entry, "bits");
    const auto columns = static_cast<std::uint64_t>(tensor.columns());
    std::uint64_t end = 0;
    bool sound = size >= 1 && size <= columns && bits >= 2 && bits <= 8 && !list_of(entry, "starts").empty();
    for (const Json& number : list_of(entry, "starts")) {
      const std::uint64_t start = number.is_number_unsigned() ? number.get<std::uint64_t>() : columns;
      sound = sound && start >= end && start <= columns - size;
      if (!sound) break;
      end = start + size;
      fine.starts.push_back(static_cast<std::int64_t>(start));
    }
    if (!sound) throw bad("protects columns in the tensor '{}' that cannot be", tensor.name);
    fine.size = static_cast<std::int64_t>(size);
    fine.bits = static_cast<int>(bits);
  }

  void read_correction(const Json& entry, QuantizedTensor& tensor) const {
    const std::int64_t columns = tensor.columns(), rows = tensor.elements() / columns;
    const std::uint64_t rank = number_of(entry, "rank");
    const std::uint64_t left = number_of(entry, "left_group"), right = number_of(entry, "right_group");
    if (rank < 1 || rank > static_cast<std::uint64_t>(std::min(rows, columns)) || left < 1 || right < 1 ||
        left > most_elements || right > most_elements) {
      throw bad("has a correction of the tensor '{}' that cannot be", tensor.name);
    }
    tensor.correction.rank = static_cast<std::int64_t>(rank);
    tensor.correction.left_group = static_cast<std::int64_t>(left);
    tensor.correction.right_group = static_cast<std::int64_t>(right);
  }

  // Returns the tensors' streams in order. Throws unless the sizes match the tensors and fill the file.
  std::vector<ArtifactStream> read_streams(const Json& list, const Artifact& artifact) const {
    std::vector<ArtifactStream> streams;
    std::uint64_t raw_total = 0, numbers = 0, total = position_;
    for (const StreamKind& kind : stream_kinds(code_streams_)) {
      const std::uint64_t elements = elements_of(artifact, kind);
      if (elements == 0) continue;
      if (streams.size() == list.size()) throw bad("lacks the part '{}' that its tensors need", kind.content);
      const Json& entry = list[streams.size()];
      if (string_of(entry, "content") != kind.content) {
        throw bad("has a part '{}' where its tensors need '{}'", string_of(entry, "content"), kind.content);
      }
      ArtifactStream stream{&kind, string_of(entry, "layout"),
                            word_in<Compression>(entry, "compression", "compression"),
                            number_of(entry, "raw_bytes"), number_of(entry, "bytes")};
      const bool matrices = kind.matrices && stream.layout == "matrices";
      if (!matrices && stream.layout != "bytes" && stream.layout != kind.layout) {
        throw bad("has a part '{}' in the unknown layout '{}'", kind.content, stream.layout);
      }
      if (matrices != (stream.compression == Compression::adaptive)) {
        throw bad("has a part '{}' whose layout '{}' and compression '{}' do not go together", kind.content,
                  stream.layout, word_of(stream.compression));
      }
      if (stream.raw_bytes != layout_bytes(elements, kind, stream.layout)) {
        throw bad("declares {} bytes for the part '{}', but its tensors have {}", stream.raw_bytes,
                  kind.content, layout_bytes(elements, kind, stream.layout));
      }
      raw_total += stream.raw_bytes;
      if (raw_total > raw_limit_)
        throw bad("would take {} bytes decompressed, the limit is {}", raw_total, raw_limit_);
      numbers += elements;
      if (numbers > always_allowed_numbers && numbers / most_numbers_per_byte > bytes_.size())
        throw bad("would take {} bytes decompressed, more than {} bytes can hold", raw_total, bytes_.size());
      if (stream.bytes > bytes_.size() - total) throw bad("is truncated in its part '{}'", kind.content);
      total += stream.bytes;
      streams.push_back(std::move(stream));
    }
    if (streams.size() != list.size()) throw bad("has parts that belong to no tensor");
    if (total != bytes_.size()) throw bad("has {} bytes after its last part", bytes_.size() - total);
    return streams;
  }

  // The sum cannot overflow: a manifest has fewer than 2^17 tensors, and each has at most 2^41 numbers of a kind.
  static std::uint64_t elements_of(const Artifact& artifact, const StreamKind& kind) {
    std::uint64_t elements = 0;
    for (const QuantizedTensor& tensor : artifact.tensors) elements += stream_elements(tensor, kind);
    return elements;
  }

  void fill_tensors(const ArtifactStream& stream, Artifact& artifact) {
    const std::string_view packed = take(stream.bytes, stream.kind->content.c_str());
    reading(stream.kind->content, [&] {
      std::string bytes;
      if (stream.compression == Compression::adaptive) {
        const std::vector<std::int8_t> codes =
            decode_codes(packed, stream_matrices(artifact.tensors, *stream.kind));
        bytes.assign(reinterpret_cast<const char*>(codes.data()), codes.size());
      } else {
        bytes = decode_layout(decompress(stream.compression, packed, stream.raw_bytes), *stream.kind,
                              stream.layout, elements_of(artifact, *stream.kind));
      }
      std::size_t offset = 0;
      for (QuantizedTensor& tensor : artifact.tensors) {
        const auto size = static_cast<std::size_t>(stream_elements(tensor, *stream.kind)) *
                          static_cast<std::size_t>(stream.kind->element_bytes);
        if (size > 0) set_stream_part(tensor, *stream.kind, std::string_view(bytes).substr(offset, size));
        offset += size;
      }
    });
  }

  void require_sound(const QuantizedTensor& tensor) const {
    const auto require_codes = [&](const char* what, const std::vector<std::int8_t>& codes, int bits) {
      const int qmax = bits > 0 ? (1 << (bits - 1)) - 1 : 0;
      if (std::ranges::any_of(codes, [&](std::int8_t code) { return std::abs(code) > qmax; }))
        throw bad("has {} in the tensor '{}' outside of [-{}, {}]", what, tensor.name, qmax, qmax);
    };
    const ProtectedColumns& fine = tensor.protected_columns;
    require_codes("codes", tensor.codes, tensor.bits);
    require_codes("protected codes", fine.codes, fine.bits);
    const auto unusable = [](std::uint16_t bits) {
      return !(std::isfinite(sdk::half_value(bits)) && bits < 0x8000U);
    };
    const LowRankCorrection& correction = tensor.correction;
    for (const auto* scales :
         {&tensor.scales, &fine.scales, &correction.left_scales, &correction.right_scales}) {
      if (!std::ranges::any_of(*scales, unusable)) continue;
      throw bad("has a scale in the tensor '{}' that is none", tensor.name);
    }
    if (tensor.bits > 0) return;
    const std::vector<float> values = dequantize(tensor);
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
      throw bad("has a value in the tensor '{}' that is not finite", tensor.name);
    }
  }

  std::string_view bytes_;
  const std::string& origin_;
  std::uint64_t raw_limit_;
  std::size_t position_ = 0;
  CodeStreams code_streams_ = CodeStreams::width;
  std::set<std::string> names_;
};

}  // namespace

Artifact parse_artifact(std::string_view bytes, const std::string& origin, std::uint64_t raw_limit) {
  return ArtifactReader(bytes, origin, raw_limit).read();
}

}  // namespace mulligan
