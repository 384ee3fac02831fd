// The file of task vectors: what is written reads back. Any damage is refused.
#include "lab/task_vectors/task_vectors_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/data_identity.h"
#include "framework/run/weights.h"
#include "lab/task_vectors/model_file.h"
#include "lab/task_vectors/task_vectors.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/unit/task_vectors_support.h"

namespace mulligan::task_vectors::task_vectors_file_test {
namespace {

using test_support::model_of;
using test_support::NamedValues;
using test_support::normal_numbers;
using test_support::write_model;

NamedValues numbers(const std::string& purpose, double deviation) {
  return {{"a", normal_numbers(17, deviation, purpose)}, {"b", normal_numbers(3, deviation, purpose + "b")}};
}

class TaskVectorsFile : public ::testing::Test {
 protected:
  TaskVectors sample(int base_bits) const {
    return pack(model_of("base", numbers("base", 1)),
                {model_of("x", numbers("x", 1.01)), model_of("y", numbers("y", 1.02))}, {3, base_bits});
  }
  // The sentence about the sample's file after `change` of its description or its tensors.
  std::string refusal_of(const std::function<void(nlohmann::ordered_json&)>& change) {
    write_task_vectors(folder_ / "v.safetensors", sample(2));
    const SafetensorsFile file(folder_ / "v.safetensors");
    auto metadata = file.metadata();
    auto json = nlohmann::ordered_json::parse(metadata.at("task_vectors"));
    change(json);
    metadata["task_vectors"] = json.dump();
    return refusal_of_tensors(file.tensors(), metadata);
  }
  std::string refusal_of_tensors(const std::vector<StoredTensor>& tensors,
                                 std::map<std::string, std::string> metadata) {
    metadata[tensors_sha256_key] = tensors_sha256(tensors);
    write_safetensors(folder_ / "changed.safetensors", tensors, metadata);
    return sentence_of([&] { read_task_vectors(folder_ / "changed.safetensors"); });
  }
  test_support::ScratchFolder folder_;
};

TEST_F(TaskVectorsFile, ReadsBackAndHasTheSizeOfTheFormula) {
  for (const int base_bits : {0, 5}) {
    const TaskVectors vectors = sample(base_bits);
    const std::size_t bytes = write_task_vectors(folder_ / "v.safetensors", vectors);
    EXPECT_EQ(bytes, std::filesystem::file_size(folder_ / "v.safetensors"));
    EXPECT_EQ(read_task_vectors(folder_ / "v.safetensors"), vectors);
    EXPECT_TRUE(is_task_vectors(folder_ / "v.safetensors"));
    std::size_t stored = 0;
    const SafetensorsFile file(folder_ / "v.safetensors");
    for (const StoredTensor& tensor : file.tensors()) stored += tensor.bytes.size();
    EXPECT_EQ(stored, vectors.tensor_bytes());
    // 17 and 3 weights of 3 bits in 7 and 2 bytes; of 5 bits in 11 and 2; a grid of 16 bytes for each.
    EXPECT_EQ(stored, 2u * (7 + 2 + 32) + (base_bits > 0 ? 11 + 2 + 32 : 0));
  }
}

TEST_F(TaskVectorsFile, EveryTruncationIsRefused) {
  write_task_vectors(folder_ / "v.safetensors", sample(2));
  const std::string whole = read_file(folder_ / "v.safetensors");
  for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 97) {
    write_file_atomically(folder_ / "cut.safetensors", whole.substr(0, length));
    EXPECT_TRUE(refuses([&] { read_task_vectors(folder_ / "cut.safetensors"); }, "cut.safetensors"));
  }
}

TEST_F(TaskVectorsFile, AChangedByteIsRefused) {
  write_task_vectors(folder_ / "v.safetensors", sample(2));
  std::string whole = read_file(folder_ / "v.safetensors");
  whole.back() = static_cast<char>(whole.back() ^ 1);
  write_file_atomically(folder_ / "v.safetensors", whole);
  EXPECT_TRUE(refuses([&] { read_task_vectors(folder_ / "v.safetensors"); }, "damaged"));
}

TEST_F(TaskVectorsFile, AWrongDescriptionIsRefused) {
  using Json = nlohmann::ordered_json;
  const std::pair<const char*, std::function<void(Json&)>> changes[] = {
      {"bits outside of 2 to 8", [](Json& json) { json["bits"] = 9; }},
      {"not a whole number", [](Json& json) { json["bits"] = "4"; }},
      {"bits outside of 2 to 8", [](Json& json) { json["base_bits"] = 1; }},
      {"missing or of another length", [](Json& json) { json["bits"] = 4; }},
      {"does not name", [](Json& json) { json["base_bits"] = 0; }},
      {"not as mulligan writes it", [](Json& json) { json.erase("base"); }},
      {"not as mulligan writes it", [](Json& json) { json["tasks"] = 3; }},
      {"does not name", [](Json& json) { json["tasks"] = Json::array(); }},
      {"not a whole number", [](Json& json) { json["parameters"][0]["shape"] = {-17}; }},
      {"beyond 2^63",
       [](Json& json) {
         json["parameters"][0]["shape"] = {1LL << 62, 1LL << 62};
       }},
      {"missing or of another length", [](Json& json) { json["parameters"][0]["shape"] = {1LL << 62}; }},
      {"not a list", [](Json& json) { json["parameters"][0]["shape"] = 17; }},
      {"of another kind", [](Json& json) { json["parameters"].erase(1); }},
      {"not a JSON object", [](Json& json) { json = 1; }}};
  for (const auto& [expected, change] : changes) {
    const std::string sentence = refusal_of(change);
    EXPECT_TRUE(contains(sentence, expected)) << expected << ": " << sentence;
  }
}

TEST_F(TaskVectorsFile, AWrongTensorIsRefused) {
  write_task_vectors(folder_ / "v.safetensors", sample(0));
  const SafetensorsFile file(folder_ / "v.safetensors");
  const auto refusal = [&](const std::string& name,
                           const std::function<void(std::vector<std::byte>&)>& edit) {
    std::vector<StoredTensor> tensors = file.tensors();
    const auto tensor = std::ranges::find(tensors, name, &StoredTensor::name);
    std::vector<std::byte> bytes(tensor->bytes.begin(), tensor->bytes.end());
    edit(bytes);
    tensor->bytes = bytes;
    return refusal_of_tensors(tensors, file.metadata());
  };
  const auto set_number = [](std::size_t at, double value) {
    return [=](std::vector<std::byte>& bytes) { std::memcpy(bytes.data() + 8 * at, &value, 8); };
  };
  for (const double bad : {std::nan(""), HUGE_VAL, -1.0})
    EXPECT_TRUE(contains(refusal("grids/0", set_number(0, bad)), "finite whole steps")) << bad;
  EXPECT_TRUE(contains(refusal("grids/1", set_number(3, 0.5)), "finite whole steps"));
  auto tensors = file.tensors();
  tensors.pop_back();
  EXPECT_NE(refusal_of_tensors(tensors, file.metadata()), "");
  EXPECT_TRUE(contains(refusal_of_tensors(file.tensors(), {{"format", "pt"}}), "another format"));
}

TEST_F(TaskVectorsFile, ModelsWithoutADifferenceAreRefused) {
  const auto refusal = [&](const NamedValues& values) {
    const Model model = open_model(write_model(folder_ / "m.safetensors", values));
    return sentence_of([&] { pack(model, {model}, {}); });
  };
  EXPECT_TRUE(contains(refusal({{"a", {1, NAN}}}), "value nan in 'a', element 1"));
  EXPECT_TRUE(contains(refusal({{"a", {-INFINITY}}}), "value -inf in 'a', element 0"));
  EXPECT_TRUE(refuses([&] { open_model(folder_ / "none"); }, "does not exist"));
  write_safetensors(folder_ / "i.safetensors", {{"a", MLG_U8, {0}, {}}});
  EXPECT_TRUE(refuses([&] { open_model(folder_ / "i.safetensors"); }, "as U8"));
  write_safetensors(folder_ / "e.safetensors", {});
  EXPECT_TRUE(refuses([&] { open_model(folder_ / "e.safetensors"); }, "no tensors"));
  const std::vector<float> values{1};
  write_safetensors(folder_ / "d.safetensors", {{"a", MLG_F32, {1}, std::as_bytes(std::span(values))}},
                    {{tensors_sha256_key, "0"}});
  EXPECT_TRUE(refuses([&] { open_model(folder_ / "d.safetensors"); }, "damaged"));
}

// A model is called after its run, or after its file.
TEST_F(TaskVectorsFile, ModelsHaveTheNamesOfTheirRuns) {
  std::filesystem::create_directories(folder_ / "runs/seed_3");
  write_model(folder_ / "runs/seed_3/weights.safetensors", numbers("x", 1));
  write_model(folder_ / "other.safetensors", numbers("x", 1));
  EXPECT_EQ(open_model(folder_ / "runs/seed_3").name, "seed_3");
  EXPECT_EQ(open_model(folder_ / "runs/seed_3/").name, "seed_3");
  EXPECT_EQ(open_model(folder_ / "runs/seed_3/weights.safetensors").name, "seed_3");
  EXPECT_EQ(open_model(folder_ / "other.safetensors").name, "other");
  EXPECT_EQ(open_model(folder_ / "other.safetensors").sha256, model_of("x", numbers("x", 1)).sha256);
}

TEST_F(TaskVectorsFile, NothingThatExistsIsReplacedByWhatIsDerived) {
  write_model(folder_ / "m.safetensors", numbers("x", 1));
  const std::string before = read_file(folder_ / "m.safetensors");
  const std::string sentence = sentence_of([&] {
    save_model(folder_ / "m.safetensors", {{"a", {1}}}, {{1.0f}}, {});
  });
  EXPECT_TRUE(contains(sentence, "only exact copy"));
  EXPECT_EQ(read_file(folder_ / "m.safetensors"), before);
}

// Merged weights know all data that they were trained on, and tokens mean one thing.
TEST_F(TaskVectorsFile, MergedWeightsNameTheDataOfAll) {
  const auto with_data = [](const std::string& name, const std::string& tokenizer, const std::string& shard) {
    Model model = model_of(name, numbers(name, 1));
    DataIdentity data;
    data.tokenizer_sha256 = sha256_hex(tokenizer);
    data.train = shard_set({{shard, 10, sha256_hex(shard)}});
    data.validation = shard_set({{"val", 5, sha256_hex("val")}});
    model.metadata = {{data_identity_key, to_json_text(data)}, {"config", "of " + name}, {"run", name}};
    return model;
  };
  const Model base = with_data("base", "t", "one"), x = with_data("x", "t", "two");
  const auto metadata = metadata_of_merged(base, {x, x}, "how");
  const DataIdentity data = data_identity_from_text(metadata.at(data_identity_key), "test");
  ASSERT_EQ(data.train.shards.size(), 2u);
  EXPECT_EQ(data.train.shards[1].name, "two");
  EXPECT_EQ(data.train.tokens, 20u);
  EXPECT_EQ(data.validation.shards.size(), 1u);
  EXPECT_EQ(metadata.at("config"), "of base");
  EXPECT_EQ(metadata.at("derived"), "how");
  EXPECT_FALSE(metadata.contains("run"));
  EXPECT_TRUE(refuses([&] { metadata_of_merged(base, {with_data("y", "u", "two")}, "how"); },
                      "different tokenizers"));
}

}  // namespace
}  // namespace mulligan::task_vectors::task_vectors_file_test
