#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ranges>

#include "framework/checkpoint/compare.h"
#include "framework/checkpoint/float_formats.h"
#include "tools/doctor/load_checks.h"

#include "tools/doctor/model_checks.h"

namespace mulligan::doctor {
namespace {

constexpr const char* convert_again =
    "convert the file again from its source, with the right dtype in its header";
// Elements of a matrix that its dtype is judged by, and the fewest of all matrices that are enough.
constexpr std::size_t judged_elements = 4096, fewest_judged = 128;

std::uint32_t raw_bits(std::span<const std::byte> bytes, std::size_t size, std::size_t index) {
  std::uint32_t raw = 0;
  std::memcpy(&raw, bytes.data() + index * size, size);
  return raw;
}

float decode(std::uint32_t raw, StoredType type) {
  const auto half = static_cast<std::uint16_t>(raw);
  if (type == StoredType::bf16) return decode_bf16(half);
  if (type == StoredType::f16) return decode_f16(half);
  float value = 0;
  std::memcpy(&value, &raw, sizeof value);
  return value;
}

// The bits that `value` has as `type`, which is f32 or bf16.
std::uint32_t encode(float value, StoredType type) {
  if (type == StoredType::bf16) return encode_bf16(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

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
    const std::size_t count = tensor.element_count(),
                      step = std::max<std::size_t>(1, count / judged_elements);
    for (std::size_t i = 0; i < count; i += step) {
      const std::uint32_t raw = raw_bits(tensor.bytes, 2, i);
      as_said.push_back(decode(raw, type));
      as_other.push_back(decode(raw, other_half(type)));
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
std::string explanation(const StoredTensor& source, const LoadedTensor& loaded) {
  const std::size_t size = stored_size(source.type), loaded_size = stored_size(loaded.type);
  const auto matches = [&](auto&& value_at) {
    return std::ranges::all_of(std::views::iota(std::size_t{0}, source.element_count()), [&](std::size_t i) {
      return encode(value_at(i), loaded.type) == raw_bits(loaded.bytes, loaded_size, i);
    });
  };
  if (is_half(source.type)) {
    const StoredType other = other_half(source.type);
    if (matches([&](std::size_t i) { return decode(raw_bits(source.bytes, size, i), other); })) {
      return fmt::format("re-decoding the source as {} matches: a header mislabels the dtype",
                         stored_name(other));
    }
  }
  if (source.shape.size() == 2) {
    const auto rows = static_cast<std::size_t>(source.shape[0]),
               columns = static_cast<std::size_t>(source.shape[1]);
    if (matches([&](std::size_t i) {
          return decode(raw_bits(source.bytes, size, (i % rows) * columns + i / rows), source.type);
        })) {
      return "it is the source's transpose";
    }
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
    if (!from || !is_weight_format(from->type)) continue;
    const std::size_t loaded_size = stored_size(tensor.type), count = tensor.bytes.size() / loaded_size;
    if (count != from->element_count()) continue;
    bool differs = false;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = decode(raw_bits(from->bytes, stored_size(from->type), i), from->type);
      const std::uint32_t bits = raw_bits(tensor.bytes, loaded_size, i);
      if (bits == encode(value, tensor.type)) continue;
      differs = true;
      if (f.verdict == CheckOutcome::fail) break;
      f.note(CheckOutcome::fail,
             fmt::format("{}[{}] loaded {} source {}; {}", tensor.name, i, decode(bits, tensor.type), value,
                         explanation(*from, tensor)),
             convert_again);
    }
    ++tensors;
    elements_compared += count;
    differing += differs;
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
