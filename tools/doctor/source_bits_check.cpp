#include <fmt/format.h>

#include <algorithm>

#include "framework/checkpoint/compare.h"
#include "framework/checkpoint/float_formats.h"
#include "tools/doctor/load_checks.h"

namespace mulligan::doctor {
namespace {

constexpr const char* convert_again =
    "convert the file again from its source, with the right dtype in its header";
// Elements of a matrix that its dtype is judged by, and the fewest of all matrices that are enough.
constexpr std::size_t judged_elements = 4096, fewest_judged = 128;

bool is_half(StoredType type) {
  return type == StoredType::bf16 || type == StoredType::f16;
}
StoredType other_half(StoredType type) {
  return type == StoredType::bf16 ? StoredType::f16 : StoredType::bf16;
}

// A sentence where the 16-bit matrices look like weights under the other dtype alone, else "".
std::string mislabelled(const SafetensorsFile& source, StoredType type) {
  std::vector<float> as_said, as_other;
  for (const StoredTensor& tensor : source.tensors()) {
    if (tensor.type != type || tensor.shape.size() < 2) continue;
    const std::vector<float> said = decode_weights(tensor.bytes, type),
                             other = decode_weights(tensor.bytes, other_half(type));
    for (std::size_t i = 0; i < said.size(); i += std::max<std::size_t>(1, said.size() / judged_elements)) {
      as_said.push_back(said[i]);
      as_other.push_back(other[i]);
    }
  }
  const MagnitudeReport said = test_magnitudes(as_said), other = test_magnitudes(as_other);
  if (std::min(said.count, other.count) < fewest_judged) return {};
  const bool impossible = said.log2_spread < 0.5 || said.log2_spread > 6;
  if (!impossible || other.log2_spread <= 0.9 || other.log2_spread >= 3) return {};
  return fmt::format(
      "decoded as {} (the header's dtype) the matrices have a spread of log2|x| of {:.2f}, "
      "re-decoded as {} one of {:.2f}, which weights have: the header mislabels the dtype",
      stored_name(type), said.log2_spread, stored_name(other_half(type)), other.log2_spread);
}

// How the source would have to be read for all elements to match, in words.
std::string explanation(const StoredTensor& source, const LoadedTensor& loaded,
                        const std::vector<float>& values) {
  const auto matches = [&](const std::vector<float>& read) {
    return encode_weights(read, loaded.type) == loaded.bytes;
  };
  if (is_half(source.type) && matches(decode_weights(source.bytes, other_half(source.type)))) {
    return fmt::format("re-decoding the source as {} matches: a header mislabels the dtype",
                       stored_name(other_half(source.type)));
  }
  if (source.shape.size() == 2) {
    const auto rows = static_cast<std::size_t>(source.shape[0]),
               columns = static_cast<std::size_t>(source.shape[1]);
    std::vector<float> turned(values.size());
    for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = values[(i % rows) * columns + i / rows];
    if (matches(turned)) return "it is the source's transpose";
  }
  return "no decoding of the source matches: another checkpoint or layout";
}

}  // namespace

Finding check_source_bits(const SafetensorsFile& source, std::span<const LoadedTensor> loaded) {
  Finding f = begin_finding("D04", "bits of the source",
                            "any element of other bits fails, and a header's dtype that no weights have");
  std::size_t tensors = 0, elements_compared = 0, differing = 0;
  for (const LoadedTensor& tensor : loaded) {
    const StoredTensor* from = source.find(tensor.name);
    const std::size_t size = stored_size(tensor.type), count = tensor.bytes.size() / size;
    if (!from || !is_weight_format(from->type) || count != from->element_count()) continue;
    ++tensors;
    elements_compared += count;
    const std::vector<float> values = decode_weights(from->bytes, from->type);
    const std::vector<std::byte> expected = encode_weights(values, tensor.type);
    if (expected == tensor.bytes) continue;
    ++differing;
    if (f.verdict == CheckOutcome::fail) continue;
    const auto place = std::ranges::mismatch(expected, tensor.bytes).in1 - expected.begin();
    const std::size_t i = static_cast<std::size_t>(place) / size;
    f.note(CheckOutcome::fail,
           fmt::format("{}[{}] loaded {} source {}; {}", tensor.name, i,
                       decode_weights(tensor.bytes, tensor.type)[i], values[i],
                       explanation(*from, tensor, values)),
           convert_again);
  }
  f.measured = fmt::format("{} elements of {} tensors compared, {} tensors differ", elements_compared,
                           tensors, differing);
  for (const StoredType type : {StoredType::bf16, StoredType::f16}) {
    if (const std::string sentence = mislabelled(source, type); !sentence.empty())
      f.note(CheckOutcome::fail, sentence, convert_again);
  }
  if (tensors > 0 || f.verdict == CheckOutcome::fail) return f;
  return judged(f, CheckOutcome::skip, "no tensor of the file was loaded", "see D03");
}

}  // namespace mulligan::doctor
