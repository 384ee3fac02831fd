// Checks of a weights file against the model that it is to fill: D03, D04 and D08.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/checkpoint/qwen2_config.h"
#include "framework/core/safetensors.h"
#include "framework/model/parameters.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D03
Finding check_coverage(const SafetensorsFile& file, const std::vector<ParameterSpec>& model);

// A parameter as it was read back from the device: what kernels read, f32 or bf16.
struct LoadedTensor {
  std::string name;
  DType type = MLG_F32;
  std::vector<std::byte> bytes;
};

// D04: what was loaded has the bits of the source, decoded by the header's dtype and rounded to nearest even. The header's
// dtype must be believable, too. Tensors of the source without a loaded one of as many elements are D03's.
Finding check_source_bits(const SafetensorsFile& source, std::span<const LoadedTensor> loaded);

// D08
Finding check_architecture(const SafetensorsFile& file, const ModelConfig& model,
                           const std::optional<PublishedModel>& published);

}  // namespace mulligan::doctor
