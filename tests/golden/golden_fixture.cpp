#include "tests/golden/golden_fixture.h"

#include <bit>
#include <cstdlib>

#include "framework/core/file.h"

namespace mulligan {
namespace {

float widen_bf16(std::uint16_t pattern) {
  return std::bit_cast<float>(std::uint32_t{pattern} << 16);
}

template <typename To, typename From>
std::vector<To> converted(const StoredTensor& tensor) {
  const std::vector<From> stored = tensor.copy<From>();
  return {stored.begin(), stored.end()};
}

template <typename To>
std::vector<To> converted_bf16(const StoredTensor& tensor) {
  std::vector<To> values;
  for (const std::uint16_t pattern : tensor.copy<std::uint16_t>()) values.push_back(widen_bf16(pattern));
  return values;
}

nlohmann::json read_manifest(const std::filesystem::path& path) {
  nlohmann::json manifest = nlohmann::json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (manifest.is_discarded()) throw data_error("'{}' is not valid JSON", path.string());
  return manifest;
}

}  // namespace

std::filesystem::path golden_folder() {
  const char* folder = std::getenv("MULLIGAN_GOLDEN_DIR");
  return folder != nullptr && *folder != '\0' ? folder : MULLIGAN_GOLDEN_DEFAULT_DIR;
}

FixtureFolder own_fixture(const std::string& name) {
  return {std::filesystem::path(MULLIGAN_GOLDEN_DEFAULT_DIR) / name};
}

GoldenFixture::GoldenFixture(const std::string& name, const std::string& file)
    : GoldenFixture(FixtureFolder{golden_folder() / name}, file) {}

GoldenFixture::GoldenFixture(const FixtureFolder& folder, const std::string& file)
    : folder_(folder.path), manifest_(read_manifest(folder_ / "manifest.json")), file_(folder_ / file) {}

std::vector<std::string> GoldenFixture::names() const {
  std::vector<std::string> result;
  for (const StoredTensor& tensor : file_.tensors()) result.push_back(tensor.name);
  return result;
}

std::vector<double> GoldenFixture::doubles(std::string_view name) const {
  const StoredTensor& tensor = file_.at(name);
  switch (tensor.type) {
    case MLG_F64:
      return tensor.copy<double>();
    case MLG_F32:
      return converted<double, float>(tensor);
    case MLG_BF16:
      return converted_bf16<double>(tensor);
    case MLG_I32:
      return converted<double, std::int32_t>(tensor);
    case MLG_U8:
      return converted<double, std::uint8_t>(tensor);
    default:
      throw wrong_type(tensor, "F64, F32, BF16, I32 or U8");
  }
}

std::vector<float> GoldenFixture::floats(std::string_view name) const {
  const StoredTensor& tensor = file_.at(name);
  switch (tensor.type) {
    case MLG_F64:
      return converted<float, double>(tensor);
    case MLG_F32:
      return tensor.copy<float>();
    case MLG_BF16:
      return converted_bf16<float>(tensor);
    default:
      throw wrong_type(tensor, "F32, F64 or BF16");
  }
}

std::vector<std::int32_t> GoldenFixture::ints(std::string_view name) const {
  const StoredTensor& tensor = file_.at(name);
  switch (tensor.type) {
    case MLG_I32:
      return tensor.copy<std::int32_t>();
    case MLG_U8:
      return converted<std::int32_t, std::uint8_t>(tensor);
    default:
      throw wrong_type(tensor, "I32 or U8");
  }
}

std::vector<std::uint8_t> GoldenFixture::bytes(std::string_view name) const {
  const StoredTensor& tensor = file_.at(name);
  if (tensor.type != MLG_U8) throw wrong_type(tensor, "U8");
  return tensor.copy<std::uint8_t>();
}

std::vector<std::int8_t> GoldenFixture::codes(std::string_view name) const {
  const std::vector<std::uint8_t> stored = bytes(name);
  return {stored.begin(), stored.end()};
}

std::vector<std::uint16_t> GoldenFixture::bits(std::string_view name) const {
  const StoredTensor& tensor = file_.at(name);
  if (tensor.type != MLG_BF16) throw wrong_type(tensor, "BF16");
  return tensor.copy<std::uint16_t>();
}

Error GoldenFixture::wrong_type(const StoredTensor& tensor, std::string_view wanted) const {
  return data_error("tensor '{}' of '{}' is stored as {}, but {} is wanted", tensor.name,
                    file_.path().string(), stored_name(tensor.type), wanted);
}

}  // namespace mulligan
