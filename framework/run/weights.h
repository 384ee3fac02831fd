// Weights as files and as host numbers.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/checkpoint/float_formats.h"
#include "framework/core/safetensors.h"
#include "framework/graph/tensor_store.h"
#include "framework/run/parameter_plan.h"
#include "framework/run/parameter_store.h"

namespace mulligan {

// The values of a tensor of the store, of f32, bf16 or f16. Waits for the device.
inline std::vector<float> download_values(const TensorStore& store, std::string_view name) {
  return decode_weights(download_bytes(store, name), store.type(name).dtype);
}

// Metadata of a weights file: the DataIdentity of its run as JSON.
inline constexpr const char* data_identity_key = "data";

// Writes each parameter under its name, from the tensor (f32 or bf16) that `source` gives for it. `metadata`
// goes into the file's header, and with it the tensors' sha256 (tensors_sha256), which is returned.
std::string save_weights(const std::filesystem::path& path, const TensorStore& store,
                         const std::vector<PlannedParameter>& parameters,
                         const std::function<std::string(const PlannedParameter&)>& source,
                         const std::map<std::string, std::string>& metadata);

// The sha256 of the tensors that the file declares; "" if it declares none. Throws data_error if they have another.
std::string checked_digest(const SafetensorsFile& file);

// Throws data_error as load_weights, having read the header of the file alone: before memory is taken for a
// model that is not the file's.
void require_weights(const std::filesystem::path& path, const ModelConfig& model);

// The weights of a file in the order of `specs`, as f32. Throws data_error as load_weights.
std::vector<std::vector<float>> read_weights(const std::filesystem::path& path,
                                             const std::vector<ParameterSpec>& specs);

// The file of weights that a user names: `name` itself, or model.safetensors in that folder, as other
// trainers lay it down. Throws data_error where there is none, also where the folder holds its weights in
// several files.
std::filesystem::path weights_file(const std::filesystem::path& name);

// Those that [init] names, checked against init.expect_sha256. Throws data_error.
std::vector<std::vector<float>> read_initial_weights(const InitConfig& init,
                                                     const std::vector<ParameterSpec>& specs);

// Reads weights (f32, bf16 or f16) into the f32 masters of `layouts`. Throws data_error when a tensor is
// missing, has another shape or dtype, the file holds one that the model has not, or its bytes are not those
// that were written (files without a checksum are accepted; origin_of_weights names them).
void load_weights(const std::filesystem::path& path, TensorStore& store,
                  const std::vector<ParameterLayout>& layouts);

}  // namespace mulligan
