#include "lab/task_vectors/save_model.h"

#include <algorithm>

#include "framework/checkpoint/float_formats.h"
#include "framework/core/error.h"
#include "framework/data/data_identity.h"
#include "framework/run/weights.h"

namespace mulligan::task_vectors {
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
        {parameters[i].name, StoredType::f32, parameters[i].shape, std::as_bytes(std::span(values.at(i)))});
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
