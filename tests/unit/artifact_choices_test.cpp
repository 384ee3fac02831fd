// What an artifact holds besides codes and scales: protected columns, corrections, the adaptive coder,
// streams by role.
#include <gtest/gtest.h>

#include <algorithm>
#include <mulligan/half.hpp>
#include <nlohmann/json.hpp>

#include "framework/artifact/quantize.h"
#include "framework/core/philox.h"
#include "tests/unit/artifact_damage.h"

namespace mulligan::artifact_choices_test {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::int8_t> some_codes(std::int64_t count, int qmax, const std::string& purpose) {
  const PhiloxStream random(3, purpose);
  std::vector<std::int8_t> codes;
  for (std::int64_t i = 0; i < count; ++i) {
    const double code = random.normal(static_cast<std::uint64_t>(i)) * qmax / 3.0;
    codes.push_back(static_cast<std::int8_t>(std::clamp(code, -1.0 * qmax, 1.0 * qmax)));
  }
  return codes;
}

std::vector<std::uint16_t> some_scales(std::int64_t count, const std::string& purpose) {
  const PhiloxStream random(4, purpose);
  std::vector<std::uint16_t> scales;
  for (std::int64_t i = 0; i < count; ++i)
    scales.push_back(
        sdk::half_bits(static_cast<float>(0.01 + random.uniform(static_cast<std::uint64_t>(i)))));
  return scales;
}

QuantizedTensor matrix(const std::string& name, std::int64_t rows, std::int64_t columns, int bits) {
  return {name,
          {rows, columns},
          TensorFormat::integer,
          bits,
          some_codes(rows * columns, (1 << (bits - 1)) - 1, name),
          some_scales(rows, name),
          {}};
}

void protect(QuantizedTensor& tensor, std::vector<std::int64_t> starts, std::int64_t size, int bits) {
  const std::int64_t rows = tensor.elements() / tensor.columns();
  ProtectedColumns& fine = tensor.protected_columns;
  fine = {std::move(starts), size, bits, {}, some_scales(rows, tensor.name + " fine")};
  fine.codes = some_codes(rows * fine.columns(), (1 << (bits - 1)) - 1, tensor.name + " fine");
  tensor.codes.resize(static_cast<std::size_t>(rows * (tensor.columns() - fine.columns())));
}

void correct(QuantizedTensor& tensor, std::int64_t rank, std::int64_t left_group, std::int64_t right_group) {
  const std::int64_t rows = tensor.elements() / tensor.columns();
  const std::int64_t left = rows * rank, right = rank * tensor.columns();
  tensor.correction = {rank,
                       left_group,
                       right_group,
                       some_codes(left, 2, "left"),
                       some_codes(right, 7, "right"),
                       some_scales((left + left_group - 1) / left_group, "left scales"),
                       some_scales((right + right_group - 1) / right_group, "right scales")};
}

// Every role in two layers with all that a tensor can have, a matrix without a role, and other formats.
Artifact full_artifact() {
  Artifact artifact;
  artifact.configuration = "[model]\nlayers = 2\n";
  artifact.tensors.push_back(matrix("tok_emb.weight", 40, 24, 7));
  protect(artifact.tensors.back(), {0, 8}, 8, 8);
  correct(artifact.tensors.back(), 4, 160, 16);
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* name : {"attn.c_q.weight", "attn.c_k.weight", "attn.c_v.weight", "attn.proj.weight",
                             "mlp.fc.weight", "mlp.proj.weight"}) {
      artifact.tensors.push_back(matrix(fmt::format("blocks.{}.{}", layer, name), 12 + layer, 24, 6));
    }
  }
  correct(artifact.tensors[5], 3, 3, 24);  // the last group of the left factor is not full
  artifact.tensors[5].correction.left_group = 5;
  artifact.tensors[5].correction.left_scales = some_scales(8, "uneven");
  protect(artifact.tensors[6], {0, 12}, 12, 3);  // all columns
  artifact.tensors.push_back(matrix("something.else", 5, 7, 4));
  artifact.tensors.push_back(quantize_int8_rows("gate", {2, 3}, std::vector<float>{1, -2, 3, 0, 0, 0}));
  artifact.tensors.push_back(store_as(TensorFormat::fp16, "scale", {3}, std::vector<float>{1, 2, 3}));
  return artifact;
}

std::string forged_json(const std::string& bytes, const std::function<void(Json&)>& edit) {
  return forged(bytes, [&](std::string& manifest) {
    Json json = Json::parse(manifest);
    edit(json);
    manifest = json.dump();
  });
}

TEST(ArtifactChoices, RoundTripInEveryCompressionAndStream) {
  const Artifact artifact = full_artifact();
  const auto check = [&](Compression compression, CodeStreams streams) {
    SCOPED_TRACE(testing::Message() << word_of(compression) << " " << static_cast<int>(streams));
    const std::string bytes = serialize_artifact(artifact, compression, nullptr, 0, streams);
    const Artifact again = parse_artifact(bytes, "sample");
    EXPECT_TRUE(again == artifact);
    EXPECT_EQ(serialize_artifact(artifact, compression, nullptr, 1, streams), bytes)
        << "depends on the threads";
    for (std::size_t i = 0; i < artifact.tensors.size(); ++i)
      EXPECT_EQ(dequantize(again.tensors[i]), dequantize(artifact.tensors[i]));
  };
  check(Compression::adaptive, CodeStreams::width);
  for (const Compression compression : {Compression::brotli, Compression::zlib}) {
    for (const CodeStreams streams :
         {CodeStreams::width, CodeStreams::role, CodeStreams::role_ordered, CodeStreams::role_all_ordered}) {
      check(compression, streams);
    }
  }
}

TEST(ArtifactChoices, SizesAddUp) {
  ArtifactSizes sizes;
  const std::string bytes = serialize_artifact(full_artifact(), Compression::adaptive, &sizes);
  double streams = static_cast<double>(sizes.overhead_bytes), tensors = streams;
  for (const ArtifactStream& stream : sizes.streams) streams += static_cast<double>(stream.bytes);
  for (const double bytes : sizes.tensors) tensors += bytes;
  EXPECT_EQ(streams, static_cast<double>(bytes.size()));
  EXPECT_NEAR(tensors, static_cast<double>(bytes.size()), 1e-6);
}

// Computed on paper: 2 rows of 4 columns with the middle two fine; a correction of rank 1.
TEST(ArtifactChoices, WhatIsReadBack) {
  QuantizedTensor tensor{"w", {2, 4}, TensorFormat::integer, 4, {1, 2, 3, 4}, {}, {}};
  const auto half = [](float value) { return sdk::half_bits(value); };
  tensor.scales = {half(1), half(10)};
  tensor.protected_columns = {{1}, 2, 8, {50, 60, 70, 80}, {half(0.5), half(0.25)}};
  EXPECT_EQ(dequantize(tensor), (std::vector<float>{1, 25, 30, 2, 30, 17.5F, 20, 40}));
  tensor.correction = {1, 2, 3, {1, -2}, {4, 5, 6, 7}, {half(0.5)}, {half(2), half(1)}};
  // left = (0.5, -1), right = (8, 10, 12, 7)
  EXPECT_EQ(dequantize(tensor), (std::vector<float>{5, 30, 36, 5.5F, 22, 7.5F, 8, 33}));
}

TEST(ArtifactChoices, WrongEntriesHaveTheirOwnSentences) {
  const std::string bytes = serialize_artifact(full_artifact(), Compression::adaptive);
  const auto says = [&](const char* sentence, const std::function<void(Json&)>& edit) {
    const std::string refused = artifact_refusal(forged_json(bytes, edit));
    EXPECT_TRUE(contains(refused, sentence)) << sentence << ": " << refused;
  };
  EXPECT_TRUE(parse_artifact(forged_json(bytes, [](Json&) {}), "same") == full_artifact());
  says("no object 'data'", [](Json& m) { m.erase("data"); });
  const auto protection = [](const char* name, Json value) {
    return [name, value](Json& m) { m["tensors"][0]["protected"][name] = value; };
  };
  says("protects columns in the tensor 'tok_emb.weight' that cannot be", protection("size", 0));
  says("that cannot be", protection("size", 100));
  says("that cannot be", protection("bits", 9));
  says("that cannot be", protection("starts", Json::array()));
  says("that cannot be", protection("starts", Json::array({8, 0})));
  says("that cannot be", protection("starts", Json::array({0, 7})));
  says("that cannot be", protection("starts", Json::array({0, 17})));
  says("that cannot be", protection("starts", Json::array({-1, 8})));
  says("that cannot be", protection("starts", Json::array({"0", 8})));
  says("no list 'starts'", protection("starts", 3));
  says("no whole number 'size'", protection("size", -8));
  says("declares", protection("starts", Json::array({0})));
  const auto correction = [](const char* name, Json value) {
    return [name, value](Json& m) { m["tensors"][0]["correction"][name] = value; };
  };
  says("a correction of the tensor 'tok_emb.weight' that cannot be", correction("rank", 0));
  says("that cannot be", correction("rank", 25));
  says("that cannot be", correction("left_group", 0));
  says("that cannot be", correction("right_group", 18446744073709551615U));
  says("no whole number 'rank'", correction("rank", "4"));
  says("declares", correction("right_group", 4));
  says("of format fp16", [](Json& m) { m["tensors"].back()["protected"] = m["tensors"][0]["protected"]; });
  says("not an object", [](Json& m) { m["tensors"][0]["protected"] = 3; });
  says("unknown streams 'sideways'", [](Json& m) { m["code_streams"] = "sideways"; });
  says("no text 'code_streams'", [](Json& m) { m["code_streams"] = 1; });
  says("do not go together", [](Json& m) { m["streams"][0]["compression"] = "brotli"; });
  says("do not go together", [](Json& m) { m["streams"].back()["compression"] = "adaptive"; });
}

TEST(ArtifactChoices, DamagedOrdersAreRefused) {
  Artifact artifact = full_artifact();
  const std::string bytes =
      serialize_artifact(artifact, Compression::zlib, nullptr, 0, CodeStreams::role_ordered);
  EXPECT_TRUE(parse_artifact(bytes, "orders") == artifact);
  // Two orders of 12 rows read as those of other matrices: rows that are not there.
  const std::string forged_file = forged_json(bytes, [](Json& m) { m["code_streams"] = "role_all_ordered"; });
  EXPECT_TRUE(contains(artifact_refusal(forged_file), "declares"));
}

TEST(ArtifactChoices, DamageBehindTheChecksumIsReadOrRefused) {
  int refused = 0;
  for (const auto& [compression, streams] : {std::pair{Compression::adaptive, CodeStreams::width},
                                             {Compression::zlib, CodeStreams::role_ordered}}) {
    const std::string bytes = serialize_artifact(full_artifact(), compression, nullptr, 0, streams);
    const PhiloxStream random(8, word_of(compression));
    for (std::uint64_t round = 0; round < 2000; ++round) {
      std::string changed = bytes;
      const std::size_t at =
          artifact_header_bytes + random.bits(2 * round) % (changed.size() - artifact_header_bytes);
      changed[at] = static_cast<char>(random.bits(2 * round + 1));
      try {
        parse_artifact(resealed(changed), "damaged", std::uint64_t{1} << 20);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace mulligan::artifact_choices_test
