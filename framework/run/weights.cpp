#include "framework/run/weights.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "framework/checkpoint/float_formats.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/model/parameters.h"

namespace mulligan {

std::string checked_digest(const SafetensorsFile& file) {
  const auto written = file.metadata().find(tensors_sha256_key);
  if (written == file.metadata().end()) return {};
  if (written->second == tensors_sha256(file.tensors())) return written->second;
  throw data_error(
      "the weights file '{}' is damaged: its tensors do not have the sha256 {} that it was written with; "
      "copy it again or train again",
      file.path().string(), short_digest(written->second));
}

std::string save_weights(const std::filesystem::path& path, const TensorStore& store,
                         const std::vector<PlannedParameter>& parameters,
                         const std::function<std::string(const PlannedParameter&)>& source,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<std::vector<std::byte>> contents;
  std::vector<StoredTensor> tensors;
  for (const PlannedParameter& parameter : parameters) {
    const std::string tensor = source(parameter);
    const TensorType& type = store.type(tensor);
    contents.push_back(download_bytes(store, tensor));
    tensors.push_back({parameter.name(), type.dtype, stored_shape(type), contents.back()});
  }
  const std::string digest = tensors_sha256(tensors);
  auto complete = metadata;
  complete[tensors_sha256_key] = digest;
  write_safetensors(path, tensors, complete);
  return digest;
}

namespace {

// What every tensor of the file must be.
void check_tensors(const SafetensorsFile& file, const std::filesystem::path& path,
                   const std::vector<ParameterSpec>& specs) {
  for (const StoredTensor& tensor : file.tensors()) {
    if (std::ranges::find(specs, tensor.name, &ParameterSpec::name) == specs.end()) {
      throw data_error(
          "'{}' holds the weight '{}', which the configured model does not have; use its own config.",
          path.string(), tensor.name);
    }
  }
  for (const ParameterSpec& spec : specs) {
    const StoredTensor& tensor = file.at(spec.name);
    if (tensor.shape != stored_shape(spec.type)) {
      throw data_error("'{}' holds the weight '{}' with shape [{}], but the configured model has {}.",
                       path.string(), tensor.name, fmt::join(tensor.shape, ", "), spec.type.text());
    }
    require_weight_format(path, tensor);
  }
}

}  // namespace

void require_weights(const std::filesystem::path& path, const ModelConfig& model) {
  check_tensors(SafetensorsFile(path), path, model_parameters(model));
}

// Calls use(number, values) for each of `specs`.
static void each_weight(const std::filesystem::path& path, const std::vector<ParameterSpec>& specs,
                        const std::function<void(std::size_t, std::vector<float>)>& use) {
  const SafetensorsFile file(path);
  check_tensors(file, path, specs);
  checked_digest(file);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const StoredTensor& tensor = file.at(specs[i].name);
    use(i, decode_weights(tensor.bytes, tensor.type));
  }
}

void load_weights(const std::filesystem::path& path, TensorStore& store,
                  const std::vector<ParameterLayout>& layouts) {
  std::vector<ParameterSpec> specs;
  for (const ParameterLayout& layout : layouts) specs.push_back(layout.spec);
  each_weight(path, specs, [&](std::size_t i, const std::vector<float>& values) {
    upload_master(store, layouts[i], values);
  });
}

std::vector<std::vector<float>> read_weights(const std::filesystem::path& path,
                                             const std::vector<ParameterSpec>& specs) {
  std::vector<std::vector<float>> all(specs.size());
  each_weight(path, specs, [&](std::size_t i, std::vector<float> values) { all[i] = std::move(values); });
  return all;
}

std::filesystem::path weights_file(const std::filesystem::path& name) {
  if (!std::filesystem::is_directory(name)) {
    if (std::filesystem::exists(name)) return name;
    throw data_error("'{}' does not exist; name a weights file, or a folder with model.safetensors.",
                     name.string());
  }
  if (std::filesystem::exists(name / "model.safetensors")) return name / "model.safetensors";
  if (std::filesystem::exists(name / "model.safetensors.index.json"))
    throw data_error("'{}' has several files of weights; mulligan checkpoint import joins them.",
                     name.string());
  throw data_error("'{}' holds no model.safetensors; name the folder or file of the weights.", name.string());
}

std::vector<std::vector<float>> read_initial_weights(const InitConfig& init,
                                                     const std::vector<ParameterSpec>& specs) {
  const std::filesystem::path file = weights_file(init.from);
  if (!init.expect_sha256.empty()) {
    const std::string found = sha256_hex_of_file(file);
    if (found != init.expect_sha256) {
      throw data_error("'{}' has the sha256 {}, but init.expect_sha256 is {}; it is another file.",
                       file.string(), found, init.expect_sha256);
    }
  }
  return read_weights(file, specs);
}

}  // namespace mulligan
