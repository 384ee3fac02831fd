#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "framework/checkpoint/float_formats.h"
#include "framework/core/philox.h"
#include "tools/doctor/load_checks.h"

namespace mulligan::doctor {
namespace {

constexpr std::size_t compared = 64, from_start = 6, from_end = 2;
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

// Standard deviation of log2|x|; NaN of too few numbers.
class Spread {
 public:
  void add(float value) {
    if (value == 0 || !std::isfinite(value)) return;
    const double exponent = std::log2(std::abs(static_cast<double>(value)));
    sum_ += exponent, squares_ += exponent * exponent;
    ++count_;
  }
  double value() const {
    if (count_ < fewest_judged) return std::nan("");
    const double mean = sum_ / static_cast<double>(count_);
    return std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_) - mean * mean));
  }

 private:
  double sum_ = 0, squares_ = 0;
  std::size_t count_ = 0;
};

bool impossible(double spread) {
  return spread < 0.5 || spread > 6;
}
bool plausible(double spread) {
  return spread > 0.9 && spread < 3;
}

// A sentence where the 16-bit matrices look like weights under the other dtype alone, else "".
std::string mislabelled(const SafetensorsFile& source, StoredType type) {
  Spread as_said, as_other;
  for (const StoredTensor& tensor : source.tensors()) {
    if (tensor.type != type || tensor.shape.size() < 2) continue;
    const std::size_t count = tensor.element_count(),
                      step = std::max<std::size_t>(1, count / judged_elements);
    for (std::size_t i = 0; i < count; i += step) {
      const std::uint32_t raw = raw_bits(tensor.bytes, 2, i);
      as_said.add(decode(raw, type));
      as_other.add(decode(raw, other_half(type)));
    }
  }
  if (!impossible(as_said.value()) || !plausible(as_other.value())) return {};
  return fmt::format(
      "decoded as {} (the header's dtype) the matrices have a spread of log2|x| of {:.2f}, "
      "re-decoded as {} one of {:.2f}, which weights have: the header mislabels the dtype",
      stored_name(type), as_said.value(), stored_name(other_half(type)), as_other.value());
}

struct Mismatch {
  std::size_t element = 0;
  float loaded = 0, source = 0;
};

// How the source would have to be read for all compared elements to match, in words.
std::string explanation(const StoredTensor& source, const LoadedTensor& loaded,
                        const std::vector<std::size_t>& elements) {
  const std::size_t size = stored_size(source.type), loaded_size = stored_size(loaded.type);
  const auto matches = [&](auto&& value_at) {
    return std::ranges::all_of(elements, [&](std::size_t i) {
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

std::vector<std::size_t> compared_elements(const std::string& name, std::size_t count, std::uint64_t seed,
                                           bool all) {
  std::set<std::size_t> chosen;
  if (all || count <= compared) {
    for (std::size_t i = 0; i < count; ++i) chosen.insert(i);
  } else {
    for (std::size_t i = 0; i < from_start; ++i) chosen.insert(i);
    for (std::size_t i = 0; i < from_end; ++i) chosen.insert(count - 1 - i);
    const PhiloxStream stream(seed, "doctor/source bits/" + name);
    for (std::uint64_t draw = 0; chosen.size() < compared; ++draw) {
      chosen.insert(
          std::min(count - 1, static_cast<std::size_t>(stream.uniform(draw) * static_cast<double>(count))));
    }
  }
  return {chosen.begin(), chosen.end()};
}

Finding check_source_bits(const SafetensorsFile& source, std::span<const LoadedTensor> loaded,
                          std::uint64_t seed, bool all) {
  Finding f = begin_finding("D04", "bits of the source",
                            "any element of other bits fails, and a header's dtype that no weights have");
  f.hint = "convert the file again from its source, with the right dtype in its header";
  std::size_t tensors = 0, elements_compared = 0, differing = 0;
  for (const LoadedTensor& tensor : loaded) {
    const StoredTensor* from = source.find(tensor.name);
    if (!from || !is_weight_format(from->type)) continue;
    const std::size_t loaded_size = stored_size(tensor.type), count = tensor.bytes.size() / loaded_size;
    if (count != from->element_count()) continue;
    const std::vector<std::size_t> elements = compared_elements(tensor.name, count, seed, all);
    std::optional<Mismatch> first;
    for (const std::size_t i : elements) {
      const float value = decode(raw_bits(from->bytes, stored_size(from->type), i), from->type);
      const std::uint32_t bits = raw_bits(tensor.bytes, loaded_size, i);
      if (bits == encode(value, tensor.type)) continue;
      if (!first) first = Mismatch{i, decode(bits, tensor.type), value};
    }
    ++tensors;
    elements_compared += elements.size();
    if (!first) continue;
    ++differing;
    if (f.message.empty()) {
      f.message = fmt::format("{}[{}] loaded {} source {}; {}", tensor.name, first->element, first->loaded,
                              first->source, explanation(*from, tensor, elements));
    }
  }
  f.measured = fmt::format("{} elements of {} tensors compared, {} tensors differ", elements_compared,
                           tensors, differing);
  for (const StoredType type : {StoredType::bf16, StoredType::f16}) {
    const std::string sentence = mislabelled(source, type);
    if (!sentence.empty() && f.message.empty()) f.message = sentence;
  }
  f.verdict = f.message.empty() ? CheckOutcome::pass : CheckOutcome::fail;
  if (tensors == 0 && f.message.empty()) {
    f.verdict = CheckOutcome::skip;
    f.message = "no tensor of the file was loaded";
    f.hint = "see D03";
  }
  if (f.verdict == CheckOutcome::pass) f.hint.clear();
  return f;
}

}  // namespace mulligan::doctor
