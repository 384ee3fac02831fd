// One fixture folder of the public reference's numbers: data.safetensors, manifest.json and, for the model,
// params.safetensors. Sizes and options of a case come from its manifest, never from constants in a test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/safetensors.h"

namespace mulligan {

// The folder that holds the fixture folders: $MULLIGAN_GOLDEN_DIR, or tests/golden of this source tree.
std::filesystem::path golden_folder();

struct FixtureFolder {
  std::filesystem::path path;
};
// tests/golden/NAME of this source tree, whatever the environment says: for fixtures that no other set has.
FixtureFolder own_fixture(const std::string& name);

class GoldenFixture {
 public:
  // name: folder below golden_folder(), for example "optim". Throws data_error when it is absent or corrupt,
  // so that a missing fixture fails its test.
  explicit GoldenFixture(const std::string& name, const std::string& file = "data.safetensors");
  explicit GoldenFixture(const FixtureFolder& folder, const std::string& file = "data.safetensors");

  const std::filesystem::path& folder() const { return folder_; }
  const nlohmann::json& manifest() const { return manifest_; }
  const SafetensorsFile& file() const { return file_; }

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  const std::vector<std::int64_t>& shape(std::string_view name) const { return file_.at(name).shape; }
  std::size_t element_count(std::string_view name) const { return file_.at(name).element_count(); }
  std::vector<std::string> names() const;

  // The elements, row-major. doubles() widens F64, F32, BF16, I32, U8; floats() widens F32, BF16 and
  // rounds F64; ints() takes I32 and U8; codes() is bytes() with a sign; bits() gives the stored patterns of
  // BF16. Any other stored type throws data_error.
  std::vector<double> doubles(std::string_view name) const;
  std::vector<float> floats(std::string_view name) const;
  std::vector<std::int32_t> ints(std::string_view name) const;
  std::vector<std::uint8_t> bytes(std::string_view name) const;
  std::vector<std::int8_t> codes(std::string_view name) const;
  std::vector<std::uint16_t> bits(std::string_view name) const;

 private:
  Error wrong_type(const StoredTensor& tensor, std::string_view wanted) const;

  std::filesystem::path folder_;
  nlohmann::json manifest_;
  SafetensorsFile file_;
};

}  // namespace mulligan
