#include "tools/record_script/ptz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "framework/artifact/byte_layout.h"
#include "framework/artifact/compression.h"
#include "framework/core/error.h"
#include "tools/record_script/torch_file.h"

namespace mulligan::record_script {
namespace {

constexpr std::uint64_t largest_unpacked = std::uint64_t{1} << 30;

using Table = TorchTables::mapped_type;

template <typename T>
std::vector<T> values_of(const TorchTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

template <typename T>
TorchTensor torch_tensor(std::string type, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  return {std::move(type), std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

// The table "w", from which each tensor of "m" takes its parts; what is left at the end is refused.
class StoredParts {
 public:
  explicit StoredParts(Table table) : table_(std::move(table)) {}

  bool has(const std::string& name) const { return table_.contains(name); }
  TorchTensor take(const std::string& name, std::string_view type) {
    const auto found = table_.find(name);
    auto* tensor = found == table_.end() ? nullptr : std::get_if<TorchTensor>(&found->second);
    if (!tensor || (!type.empty() && tensor->type != type))
      throw std::runtime_error(fmt::format("has no {} tensor '{}'", type.empty() ? "plain" : type, name));
    TorchTensor taken = std::move(*tensor);
    table_.erase(found);
    return taken;
  }
  std::int64_t take_number(const std::string& name) {
    const TorchTensor tensor = take(name, "Short");
    if (tensor.elements() != 1) throw std::runtime_error(fmt::format("has no single number '{}'", name));
    return values_of<std::int16_t>(tensor).front();
  }
  void require_empty() const {
    if (!table_.empty())
      throw std::runtime_error(
          fmt::format("holds '{}', which no tensor of it is made of", table_.begin()->first));
  }

 private:
  Table table_;
};

std::runtime_error unfitting(const std::string& name, const char* part) {
  return std::runtime_error(fmt::format("has {} of '{}' that do not fit its codes", part, name));
}

// The number behind `word` in a note such as "gptq (int6)+awqgrpint8+lqer_asym"; 0: it does not have the word.
int number_behind(const std::string& note, std::string_view word) {
  const std::size_t at = note.find(word);
  if (at == std::string::npos || at + word.size() >= note.size()) return 0;
  const int digit = note[at + word.size()] - '0';
  return digit >= 2 && digit <= 8 ? digit : 0;
}

// Columns with finer codes: the script leaves them among the others.
void split_protected(StoredParts& parts, QuantizedTensor& tensor, int bits) {
  ProtectedColumns& fine = tensor.protected_columns;
  for (const std::int16_t start : values_of<std::int16_t>(parts.take(tensor.name + ".awqg_start", "Short")))
    fine.starts.push_back(start);
  std::ranges::sort(fine.starts);
  fine.size = parts.take_number(tensor.name + ".awqg_size");
  fine.bits = bits;
  fine.scales = values_of<std::uint16_t>(parts.take(tensor.name + ".awqg_s_hi", "Half"));
  std::int64_t free = 0;  // first column that no group has
  for (const std::int64_t start : fine.starts) {
    if (fine.size < 1 || start < free || start + fine.size > tensor.columns())
      throw unfitting(tensor.name, "protected columns");
    free = start + fine.size;
  }
  if (fine.scales.size() != tensor.scales.size()) throw unfitting(tensor.name, "protected scales");
  const std::vector<bool> mask = fine.mask(tensor.columns());
  std::vector<std::int8_t> others;
  for (std::size_t i = 0; i < tensor.codes.size(); ++i)
    (mask[i % mask.size()] ? fine.codes : others).push_back(tensor.codes[i]);
  tensor.codes = std::move(others);
}

// "lqer_asym" has one scale for the left factor and one for each run of the right; "lqer" one for each row of both.
void take_correction(StoredParts& parts, QuantizedTensor& tensor, bool asymmetric) {
  const std::string suffix = asymmetric ? "_a" : "", &name = tensor.name;
  const TorchTensor left = parts.take(name + ".lqA" + suffix, "Char");
  const TorchTensor right = parts.take(name + ".lqB" + suffix, "Char");
  LowRankCorrection& correction = tensor.correction;
  correction.left_scales = values_of<std::uint16_t>(parts.take(name + ".lqAs" + suffix, "Half"));
  correction.right_scales = values_of<std::uint16_t>(parts.take(name + ".lqBs" + suffix, "Half"));
  const auto rows = static_cast<std::int64_t>(tensor.scales.size());
  const auto group = [&](const TorchTensor& factor, const std::vector<std::uint16_t>& scales) {
    const auto count = static_cast<std::int64_t>(scales.size());
    if (count == 0 || factor.elements() == 0 || factor.elements() % count != 0)
      throw unfitting(name, "scales of a correction");
    return factor.elements() / count;
  };
  if (left.shape.size() != 2 || left.shape[0] != rows ||
      right.shape != std::vector{left.shape[1], tensor.columns()})
    throw unfitting(name, "factors of a correction");
  correction.rank = left.shape[1];
  correction.left_group = group(left, correction.left_scales);
  correction.right_group = group(right, correction.right_scales);
  correction.left = values_of<std::int8_t>(left);
  correction.right = values_of<std::int8_t>(right);
}

QuantizedTensor take_codes(StoredParts& parts, const std::string& name, const std::string& note) {
  const bool gate = note == "gate_int8_row", rows = gate || note == "int8_per_row";
  const TorchTensor codes = parts.take(name + (gate ? ".gq" : ".q"), "Char");
  QuantizedTensor tensor{name,
                         codes.shape,
                         rows ? TensorFormat::int8_row : TensorFormat::integer,
                         rows ? 8 : number_behind(note, "(int"),
                         values_of<std::int8_t>(codes),
                         {},
                         {}};
  if (tensor.bits == 0 || codes.shape.size() < 2)
    throw std::runtime_error(fmt::format("says '{}' of '{}', which is not understood", note, name));
  tensor.scales = values_of<std::uint16_t>(parts.take(name + (gate ? ".gs" : ".scale"), "Half"));
  if (tensor.columns() == 0 ||
      static_cast<std::int64_t>(tensor.scales.size()) != codes.elements() / tensor.columns())
    throw unfitting(name, "scales");
  if (const int bits = number_behind(note, "awqgrpint")) split_protected(parts, tensor, bits);
  if (note.find("+lqer") != std::string::npos)
    take_correction(parts, tensor, note.find("+lqer_asym") != std::string::npos);
  return tensor;
}

QuantizedTensor take_plain(StoredParts& parts, const std::string& name) {
  TorchTensor plain = parts.take(name, "");
  const TensorFormat format = plain.type == "Half"       ? TensorFormat::fp16
                              : plain.type == "BFloat16" ? TensorFormat::bf16
                                                         : TensorFormat::fp32;
  if (format == TensorFormat::fp32 && plain.type != "Float")
    throw std::runtime_error(fmt::format("has '{}' as {}, which weights are not", name, plain.type));
  return {name, plain.shape, format, 0, {}, {}, std::move(plain.bytes)};
}

std::string unpacked(std::string_view bytes) {
  if (bytes.starts_with("PGRP"))
    throw std::runtime_error(
        "holds codes that lrzip has packed (COMPRESSOR=pergroup), which are not read here; write it with "
        "COMPRESSOR=brotli");
  if (bytes.starts_with("\xFD"
                        "7zXZ"))
    throw std::runtime_error("is packed by xz (COMPRESSOR=lzma); write it with COMPRESSOR=brotli");
  std::string raw = decompress_brotli_within(bytes, largest_unpacked);
  return raw.starts_with("BSHF") ? unshuffle_bytes(raw, 2) : raw;
}

// What both scripts name a tensor's parts, but for gates: int8 rows of 1886 are read by 2014's as codes like others.
void put_tensor(const QuantizedTensor& tensor, Table& stored, Table& notes) {
  const std::string& name = tensor.name;
  if (tensor.codes.empty() && tensor.protected_columns.codes.empty()) {
    const char* type = tensor.format == TensorFormat::fp16   ? "Half"
                       : tensor.format == TensorFormat::bf16 ? "BFloat16"
                                                             : "Float";
    stored[name] = TorchTensor{type, tensor.shape, tensor.values};
    notes[name] = fmt::format("passthrough ({})", type);
    return;
  }
  std::string note =
      tensor.format == TensorFormat::int8_row ? "int8_per_row" : fmt::format("gptq (int{})", tensor.bits);
  stored[name + ".scale"] =
      torch_tensor("Half", {static_cast<std::int64_t>(tensor.scales.size())}, tensor.scales);
  std::vector<std::int8_t> codes = tensor.codes;
  if (const ProtectedColumns& fine = tensor.protected_columns; !fine.starts.empty()) {
    const std::vector<bool> mask = fine.mask(tensor.columns());
    codes.resize(static_cast<std::size_t>(tensor.elements()));
    std::size_t next = 0, next_fine = 0;
    for (std::size_t i = 0; i < codes.size(); ++i)
      codes[i] = mask[i % mask.size()] ? fine.codes[next_fine++] : tensor.codes[next++];
    stored[name + ".awqg_start"] =
        torch_tensor("Short", {static_cast<std::int64_t>(fine.starts.size())},
                     std::vector<std::int16_t>(fine.starts.begin(), fine.starts.end()));
    stored[name + ".awqg_size"] =
        torch_tensor("Short", {}, std::vector{static_cast<std::int16_t>(fine.size)});
    stored[name + ".awqg_s_hi"] =
        torch_tensor("Half", {static_cast<std::int64_t>(fine.scales.size())}, fine.scales);
    note += fmt::format("+awqgrpint{}", fine.bits);
  }
  stored[name + ".q"] = torch_tensor("Char", tensor.shape, codes);
  if (const LowRankCorrection& correction = tensor.correction; correction.rank > 0) {
    const auto rows = static_cast<std::int64_t>(tensor.scales.size());
    const auto right_scales = static_cast<std::int64_t>(correction.right_scales.size());
    const bool asymmetric = correction.left_scales.size() == 1 &&
                            right_scales * correction.right_group == correction.rank * tensor.columns();
    if (!asymmetric &&
        (correction.left_group != correction.rank || correction.right_group != tensor.columns()))
      throw config_error(
          "'{}' has a correction with scales that the record's script has no form for; quantise with a "
          "correction_group that divides rank x columns.",
          name);
    const std::string suffix = asymmetric ? "_a" : "";
    stored[name + ".lqA" + suffix] = torch_tensor("Char", {rows, correction.rank}, correction.left);
    stored[name + ".lqB" + suffix] =
        torch_tensor("Char", {correction.rank, tensor.columns()}, correction.right);
    stored[name + ".lqAs" + suffix] = torch_tensor(
        "Half", asymmetric ? std::vector<std::int64_t>{} : std::vector{rows}, correction.left_scales);
    stored[name + ".lqBs" + suffix] = torch_tensor("Half", {right_scales}, correction.right_scales);
    note += asymmetric ? "+lqer_asym" : "+lqer";
  }
  notes[name] = note;
}

}  // namespace

std::vector<QuantizedTensor> parse_ptz(std::string_view bytes, const std::string& origin) {
  try {
    TorchTables tables = read_torch_file(unpacked(bytes));
    if (tables.size() != 2 || !tables.contains("w") || !tables.contains("m"))
      throw std::runtime_error("does not hold the two tables 'w' and 'm'");
    StoredParts parts(std::move(tables["w"]));
    std::vector<QuantizedTensor> tensors;
    for (const auto& [name, value] : tables["m"]) {
      const auto* note = std::get_if<std::string>(&value);
      if (!note) throw std::runtime_error("has a tensor where 'm' should say how one is stored");
      tensors.push_back(note->starts_with("passthrough") ? take_plain(parts, name)
                                                         : take_codes(parts, name, *note));
    }
    parts.require_empty();
    return tensors;
  } catch (const std::runtime_error& error) {
    throw data_error("'{}', as an artifact of the record's script, {}; copy it again or write it again.",
                     origin, error.what());
  }
}

std::string serialize_ptz(const std::vector<QuantizedTensor>& tensors) {
  TorchTables tables;
  for (const QuantizedTensor& tensor : tensors) put_tensor(tensor, tables["w"], tables["m"]);
  return compress(Compression::brotli, write_torch_file(tables));
}

}  // namespace mulligan::record_script
