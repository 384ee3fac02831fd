#include "lab/task_vectors/model_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "framework/checkpoint/float_formats.h"
#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/run/weights.h"

namespace mulligan::task_vectors {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& path) {
  if (fs::is_directory(path) && fs::exists(path / "weights.safetensors")) return path / "weights.safetensors";
  if (fs::is_directory(path) && fs::exists(path / "config.toml")) {
    throw data_error("'{}' holds no weights.safetensors, so the run has not finished; train it first.",
                     path.string());
  }
  return weights_file(path);
}

// "runs/a/weights.safetensors" and "runs/a" are both "a".
std::string name_of(const fs::path& path, const fs::path& file) {
  const bool of_folder = fs::is_directory(path) || file.filename() == "weights.safetensors" ||
                         file.filename() == "model.safetensors";
  const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  return of_folder ? folder.filename().string() : file.stem().string();
}

}  // namespace

std::size_t Parameter::elements() const {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

Model open_model(const fs::path& path) {
  const fs::path file_path = file_of(path);
  const auto file = std::make_shared<const SafetensorsFile>(file_path);
  Model model;
  model.name = name_of(path, file_path);
  model.source = path.string();
  model.metadata = file->metadata();
  model.sha256 = tensors_sha256(file->tensors());
  const auto written = model.metadata.find(tensors_sha256_key);
  if (written != model.metadata.end() && written->second != model.sha256) {
    throw data_error(
        "the weights file '{}' is damaged: its tensors do not have the sha256 {} that it was written with; "
        "copy it again or train again",
        file_path.string(), short_digest(written->second));
  }
  if (file->tensors().empty()) throw data_error("'{}' holds no tensors.", file_path.string());
  for (const StoredTensor& tensor : file->tensors()) {
    if (!is_weight_format(tensor.type)) {
      throw data_error("'{}' holds '{}' as {}, but weights are F32, BF16 or F16.", file_path.string(),
                       tensor.name, stored_name(tensor.type));
    }
    model.parameters.push_back({tensor.name, tensor.shape});
  }
  std::ranges::sort(model.parameters, {}, &Parameter::name);
  model.values = [file, parameters = model.parameters](std::size_t index) {
    const StoredTensor& tensor = file->at(parameters.at(index).name);
    std::vector<float> values = decode_weights(tensor.bytes, tensor.type);
    const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    if (bad != values.end()) {
      throw data_error("'{}' holds the value {} in '{}', element {}; such weights have no difference.",
                       file->path().string(), *bad, tensor.name, bad - values.begin());
    }
    return values;
  };
  return model;
}

void require_same_parameters(const Model& base, const Model& model) {
  const auto describe = [](const Parameter& parameter) {
    return fmt::format("'{}' [{}]", parameter.name, fmt::join(parameter.shape, ", "));
  };
  const auto other = std::ranges::mismatch(base.parameters, model.parameters);
  const bool in_base = other.in1 != base.parameters.end(), in_model = other.in2 != model.parameters.end();
  if (!in_base && !in_model) return;
  throw data_error("'{}' is no fine-tuned form of the base '{}': where that has {}, it has {}.", model.source,
                   base.source, in_base ? describe(*other.in1) : "nothing more",
                   in_model ? describe(*other.in2) : "nothing more");
}

}  // namespace mulligan::task_vectors
