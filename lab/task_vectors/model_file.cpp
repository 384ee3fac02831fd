#include "lab/task_vectors/model_file.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <memory>

#include "framework/checkpoint/float_formats.h"
#include "framework/core/error.h"
#include "framework/data/data_identity.h"
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
  model.sha256 = checked_digest(*file);
  if (model.sha256.empty()) model.sha256 = tensors_sha256(file->tensors());
  if (file->tensors().empty()) throw data_error("'{}' holds no tensors.", file_path.string());
  for (const StoredTensor& tensor : file->tensors()) {
    require_weight_format(file_path, tensor);
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
  throw data_error("'{}' is not a fine-tuned form of the base '{}': where that has {}, it has {}.",
                   model.source, base.source, in_base ? describe(*other.in1) : "nothing more",
                   in_model ? describe(*other.in2) : "nothing more");
}

namespace {

DataIdentity data_of(const Model& model) {
  const auto text = model.metadata.find(data_identity_key);
  if (text == model.metadata.end()) return {};
  return data_identity_from_text(text->second, fmt::format("'{}'", model.source));
}

// Adds the training data of `other`. Of validation data that differ nothing is said: the weights have none of
// their own then.
void unite(DataIdentity& data, const DataIdentity& other) {
  std::vector<ShardIdentity> shards = data.train.shards;
  for (const ShardIdentity& shard : other.train.shards) {
    if (std::ranges::find(shards, shard.sha256, &ShardIdentity::sha256) == shards.end())
      shards.push_back(shard);
  }
  if (shards.size() != data.train.shards.size()) data.train = shard_set(std::move(shards));
  if (data.validation != other.validation || data.packing != other.packing) {
    data.validation = {};
    data.packing.clear();
  }
  if (data.byte_table_sha256 != other.byte_table_sha256) data.byte_table_sha256.clear();
}

}  // namespace

void require_new_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, failed))) return;
  throw config_error("'{}' exists and is not replaced: it may be the only exact copy; name another file.",
                     path.string());
}

void save_model(const std::filesystem::path& path, const std::vector<Parameter>& parameters,
                std::vector<std::vector<float>> values, std::map<std::string, std::string> metadata) {
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    tensors.push_back(
        {parameters[i].name, MLG_F32, parameters[i].shape, std::as_bytes(std::span(values.at(i)))});
  }
  metadata[tensors_sha256_key] = tensors_sha256(tensors);
  require_new_file(path);
  write_safetensors(path, tensors, metadata);
}

std::map<std::string, std::string> metadata_of(const Model& model, const std::string& how) {
  std::map<std::string, std::string> metadata{{"format", "mulligan weights 1"}, {"derived", how}};
  for (const char* key : {"run", "weights", "config", "commit", data_identity_key}) {
    const auto found = model.metadata.find(key);
    if (found != model.metadata.end()) metadata.insert(*found);
  }
  return metadata;
}

std::map<std::string, std::string> metadata_of_merged(const Model& base, const std::vector<Model>& models,
                                                      const std::string& how) {
  std::vector<const Model*> all{&base};
  for (const Model& model : models) all.push_back(&model);
  const Model* described = &base;
  const Model* with_data = nullptr;
  DataIdentity united;
  for (const Model* model : all) {
    if (!described->metadata.contains("config")) described = model;
    const DataIdentity data = data_of(*model);
    if (data.empty()) continue;
    if (with_data == nullptr) {
      with_data = model;
      united = data;
    } else if (data.tokenizer_sha256 != united.tokenizer_sha256) {
      throw data_error(
          "'{}' and '{}' were trained with different tokenizers, so their "
          "tokens mean different things; merge models of one tokenizer.",
          with_data->source, model->source);
    } else {
      unite(united, data);
    }
  }
  std::map<std::string, std::string> metadata = metadata_of(*described, how);
  metadata["weights"] = "merged";
  metadata.erase("run");
  metadata.erase(data_identity_key);
  if (with_data != nullptr) metadata[data_identity_key] = to_json_text(united);
  return metadata;
}

}  // namespace mulligan::task_vectors
