// The artifact file: round trips, what it holds besides codes and scales, and damaged bytes of every kind.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mulligan/half.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "framework/artifact/artifact_file.h"
#include "framework/artifact/artifact_layout.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/quantize_model.h"
#include "framework/core/philox.h"
#include "tests/support/long_tests.h"
#include "tests/support/sentence.h"

namespace mulligan::artifact_file_test {
namespace {

constexpr Compression every_compression[] = {Compression::brotli, Compression::zlib};

std::vector<float> normal_weights(std::size_t count, const std::string& purpose) {
  std::vector<float> weights(count);
  PhiloxStream(7, purpose).fill_normal(weights, 0.05);
  return weights;
}

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

// Every role in two layers with all that a tensor can have, matrices of every width without a role, and every other format.
Artifact sample_artifact() {
  Artifact artifact;
  artifact.configuration = "[model]\nlayers = 2\n";
  artifact.data.tokenizer_sha256 = std::string(64, 'a');
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
  for (int bits = 2; bits <= 8; ++bits)
    artifact.tensors.push_back(matrix("integer" + std::to_string(bits), 6, 11, bits));
  artifact.tensors.push_back(quantize_int8_rows("gate", {3, 8}, normal_weights(24, "gate")));
  artifact.tensors.push_back(store_as(TensorFormat::bf16, "brain", {5, 2, 2}, normal_weights(20, "brain")));
  artifact.tensors.push_back(store_as(TensorFormat::fp32, "full", {9}, normal_weights(9, "full")));
  artifact.tensors.push_back(store_as(TensorFormat::fp16, "scale", {17}, normal_weights(17, "scale")));
  return artifact;
}

// The file with its manifest edited as text, and everything that depends on it put right.
std::string forged(const std::string& bytes, const std::function<void(std::string&)>& edit) {
  const auto number = [&](std::size_t offset) {
    std::uint32_t value = 0;
    bytes.copy(reinterpret_cast<char*>(&value), sizeof value, offset);
    return value;
  };
  const std::uint32_t packed = number(artifact_manifest_offset);
  std::string manifest =
      decompress(Compression::brotli, std::string_view(bytes).substr(artifact_header_bytes, packed),
                 number(artifact_manifest_raw_offset));
  edit(manifest);
  return assembled_artifact(compress(Compression::brotli, manifest), manifest.size(),
                            std::string_view(bytes).substr(artifact_header_bytes + packed));
}

// The sentence of the data_error that reading gives.
std::string artifact_refusal(const std::string& bytes, std::uint64_t limit = std::uint64_t{1} << 20) {
  return sentence_of(ExitCode::bad_data, [&] { parse_artifact(bytes, "x.mulligan", limit); });
}

std::string forged_json(const std::string& bytes, const std::function<void(Json&)>& edit) {
  return forged(bytes, [&](std::string& manifest) {
    Json json = Json::parse(manifest);
    edit(json);
    manifest = json.dump();
  });
}

// More and fewer bytes than declared, missing ones, others after the end, and damage, in each compression.
TEST(Compression, WhatIsWrongIsSaid) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += std::to_string(PhiloxStream(2, "text").bits(i) % 1000);
  for (const Compression compression : every_compression) {
    SCOPED_TRACE(word_of(compression));
    const std::string packed = compress(compression, text);
    EXPECT_LT(packed.size(), text.size());
    EXPECT_EQ(decompress(compression, packed, text.size()), text);
    const auto said = [&](const std::string& bytes, std::uint64_t declared) {
      return said_by([&] { decompress(compression, bytes, declared); });
    };
    EXPECT_EQ(said(packed, text.size() - 1),
              fmt::format("holds more than the {} bytes declared", text.size() - 1));
    EXPECT_EQ(said(packed, text.size() + 1),
              fmt::format("holds {} bytes instead of the {} declared", text.size(), text.size() + 1));
    EXPECT_EQ(said(packed.substr(0, packed.size() / 2), text.size()), "is truncated");
    EXPECT_EQ(said(packed + "xyz", text.size()), "has 3 bytes too many");
    EXPECT_EQ(said("\x7f" + packed.substr(1), text.size()), "is corrupt");
    EXPECT_NE(said("", text.size()), "");
    EXPECT_EQ(decompress(compression, compress(compression, ""), 0), "");
  }
}

TEST(ArtifactFile, SizesAddUpToTheFile) {
  for (const Compression compression : {Compression::brotli, Compression::adaptive}) {
    ArtifactSizes sizes;
    const std::string bytes = serialize_artifact(sample_artifact(), compression, &sizes);
    EXPECT_EQ(sizes.total_bytes, bytes.size());
    std::uint64_t streams = sizes.overhead_bytes;
    double tensors = 0;
    for (const ArtifactStream& stream : sizes.streams) streams += stream.bytes;
    for (const double bytes : sizes.tensors) tensors += bytes;
    EXPECT_EQ(streams, bytes.size());
    EXPECT_NEAR(tensors, static_cast<double>(bytes.size() - sizes.overhead_bytes), 1e-6);
  }
}

// Codes that use their whole width pack; codes around zero leave bytes of low entropy.
TEST(ArtifactFile, TheLayoutIsChosenByTheResultingSize) {
  Artifact uniform, peaked;
  uniform.tensors = {matrix("w", 64, 256, 6)};
  peaked.tensors = uniform.tensors;
  const PhiloxStream random(3, "uniform");
  for (std::size_t i = 0; i < uniform.tensors[0].codes.size(); ++i) {
    uniform.tensors[0].codes[i] = static_cast<std::int8_t>(static_cast<int>(random.bits(i) % 63) - 31);
    peaked.tensors[0].codes[i] = static_cast<std::int8_t>(random.bits(i) % 64 == 0 ? 1 : 0);
  }
  ArtifactSizes sizes;
  serialize_artifact(uniform, Compression::zlib, &sizes);
  EXPECT_EQ(sizes.streams.at(0).layout, "packed");
  serialize_artifact(peaked, Compression::brotli, &sizes);
  EXPECT_EQ(sizes.streams.at(0).kind->content, "codes6");
}

// The layout of a part beyond 4 MiB is found out on a piece of it; the whole is written.
TEST(ArtifactFile, LargePartsRoundTrip) {
  Artifact large;
  // Just beyond 4 MiB of codes; Brotli at its strongest takes seconds for them.
  const std::int64_t rows = long_tests() ? 3000 : 2700;
  large.tensors = {matrix("w", rows, 1600, 5)};
  ArtifactSizes sizes;
  const std::string bytes =
      serialize_artifact(large, long_tests() ? Compression::brotli : Compression::zlib, &sizes);
  EXPECT_GE(sizes.streams.at(0).raw_bytes, static_cast<std::uint64_t>(rows) * 1600U * 5U / 8U);
  EXPECT_TRUE(parse_artifact(bytes, "large") == large);
}

TEST(ArtifactFile, PackedIntegersRoundTrip) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (const std::int64_t columns : {1, 7, 8, 9, 64}) {
      const StreamKind kind{"codes", 1, bits};
      const std::string codes = stream_part(matrix("p", 3, columns, bits), kind);
      const std::string packed = encode_layout(codes, kind, "packed");
      EXPECT_EQ(packed.size(), layout_bytes(codes.size(), kind, "packed"));
      EXPECT_EQ(decode_layout(packed, kind, "packed", codes.size()), codes);
    }
  }
}

TEST(ArtifactFile, TruncationAtEveryByteIsRefused) {
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::brotli);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(artifact_refusal(bytes.substr(0, length)).empty()) << length;
    EXPECT_FALSE(artifact_refusal(sealed_artifact(bytes.substr(0, length))).empty())
        << length << " with the checksum corrected";
  }
  EXPECT_FALSE(artifact_refusal(bytes + "x").empty());
  EXPECT_TRUE(contains(artifact_refusal(sealed_artifact(bytes + "x")), "after its last part"));
}

TEST(ArtifactFile, EveryFlippedBitIsNoticed) {
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::brotli);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(artifact_refusal(changed).empty()) << "byte " << i;
  }
}

// Damage whose checksum was corrected reaches the parser: it gives an artifact or a data_error.
TEST(ArtifactFile, RandomDamageBehindTheChecksum) {
  int accepted = 0, refused = 0;
  for (const auto& [compression, streams] : {std::pair{Compression::brotli, CodeStreams::width},
                                             {Compression::zlib, CodeStreams::role_ordered},
                                             {Compression::adaptive, CodeStreams::width}}) {
    const std::string bytes = serialize_artifact(sample_artifact(), compression, nullptr, 0, streams);
    const PhiloxStream random(42, word_of(compression));
    std::uint64_t draw = 0;
    for (int round = 0; round < 2000; ++round) {
      std::string changed = bytes;
      const int edits = 1 + static_cast<int>(random.bits(draw++) % 4);
      for (int edit = 0; edit < edits && !changed.empty(); ++edit) {
        const std::size_t at = random.bits(draw++) % changed.size();
        const std::uint32_t action = random.bits(draw++) % 4;
        if (action == 0) changed[at] = static_cast<char>(random.bits(draw++));
        if (action == 1) changed.erase(at, 1 + random.bits(draw++) % 8);
        if (action == 2) {
          const std::size_t count = 1 + random.bits(draw++) % 8;
          changed.insert(at, count, static_cast<char>(random.bits(draw++)));
        }
        if (action == 3) changed.resize(at);
      }
      try {
        parse_artifact(sealed_artifact(changed), "damaged", std::uint64_t{1} << 20);
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_EQ(accepted + refused, 6000);
  EXPECT_GT(refused, 4500);
}

// The sentence about the sample whose manifest, where sizes and shapes stand, has `to` in place of `from`.
std::string refused_after(const std::string& from, const std::string& to) {
  return artifact_refusal(
      forged(serialize_artifact(sample_artifact(), Compression::brotli), [&](std::string& manifest) {
        const std::size_t at = manifest.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        manifest.replace(at, from.size(), to);
      }));
}

TEST(ArtifactManifest, WrongEntriesHaveTheirOwnSentences) {
  const auto says = [&](const char* from, const char* to, const char* sentence) {
    EXPECT_TRUE(contains(refused_after(from, to), sentence))
        << from << " -> " << to << ": " << refused_after(from, to);
  };
  says("\"configuration\":", "\"konfiguration\":", "no text 'configuration'");
  says("\"tensors\":[", "\"tensors\":7,\"rest\":[", "no list 'tensors'");
  says("\"streams\":[", "\"streams\":[1,", "no text 'content'");
  says("\"shape\":[6,11]", "\"shape\":[6,0]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[6,-11]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[1,2,3,4,5]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[2147483648,2147483648]", "larger than any");
  says("\"shape\":[6,11]", "\"shape\":[2147483648,512,2147483648]", "larger than any");
  says("\"shape\":[6,11]", "\"shape\":[4294967296,1]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[6,12]", "declares");
  says("\"name\":\"integer3\"", "\"name\":\"integer2\"", "twice");
  says("\"format\":\"int\"", "\"format\":\"float\"", "unknown format 'float'");
  says("\"bits\":2", "\"bits\":9", "with 9 bits");
  says("\"bits\":2", "\"bits\":-2", "no whole number 'bits'");
  says("\"content\":\"codes3\"", "\"content\":\"codes9\"", "need 'codes3'");
  says("\"layout\":\"", "\"layout\":\"un", "unknown layout");
  says("\"compression\":\"brotli\"", "\"compression\":\"gzip\"", "unknown compression 'gzip'");
  says("\"compression\":\"brotli\"", "\"compression\":\"zlib\"", "is corrupt");
}

TEST(ArtifactManifest, NoMemoryIsTakenForAFalseDeclaration) {
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::brotli);
  EXPECT_TRUE(contains(artifact_refusal(bytes, 100), "the limit is 100"));
  EXPECT_TRUE(contains(refused_after("\"shape\":[17]", "\"shape\":[1099511627776]"), "shape"));
  EXPECT_TRUE(contains(refused_after("\"shape\":[17]", "\"shape\":[536870912,17]"), "declares"));
}

TEST(ArtifactFile, OtherFilesAreNamedAsSuch) {
  EXPECT_TRUE(contains(artifact_refusal(std::string(200, 'z')), "is not an artifact"));
  std::string newer = serialize_artifact(sample_artifact(), Compression::brotli);
  newer[artifact_version_offset] = 9;
  EXPECT_TRUE(contains(artifact_refusal(sealed_artifact(newer)), "format version 9"));
  EXPECT_THROW(read_artifact("/nowhere/at/all.mulligan"), Error);
}

TEST(ArtifactFile, RoundTripInEveryCompressionAndStream) {
  const Artifact artifact = sample_artifact();
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

// Computed on paper: 2 rows of 4 columns with the middle two fine; a correction of rank 1.
TEST(ArtifactFile, WhatIsReadBack) {
  QuantizedTensor tensor{"w", {2, 4}, TensorFormat::integer, 4, {1, 2, 3, 4}, {}, {}};
  const auto half = [](float value) { return sdk::half_bits(value); };
  tensor.scales = {half(1), half(10)};
  tensor.protected_columns = {{1}, 2, 8, {50, 60, 70, 80}, {half(0.5), half(0.25)}};
  EXPECT_EQ(dequantize(tensor), (std::vector<float>{1, 25, 30, 2, 30, 17.5F, 20, 40}));
  tensor.correction = {1, 2, 3, {1, -2}, {4, 5, 6, 7}, {half(0.5)}, {half(2), half(1)}};
  // left = (0.5, -1), right = (8, 10, 12, 7)
  EXPECT_EQ(dequantize(tensor), (std::vector<float>{5, 30, 36, 5.5F, 22, 7.5F, 8, 33}));
}

TEST(ArtifactFile, WrongChoicesHaveTheirOwnSentences) {
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::adaptive);
  const auto says = [&](const char* sentence, const std::function<void(Json&)>& edit) {
    const std::string refused = artifact_refusal(forged_json(bytes, edit));
    EXPECT_TRUE(contains(refused, sentence)) << sentence << ": " << refused;
  };
  EXPECT_TRUE(parse_artifact(forged_json(bytes, [](Json&) {}), "same") == sample_artifact());
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
  says("no whole number 'size'", [](Json& m) { m["tensors"][0]["protected"] = 3; });
  says("unknown streams 'sideways'", [](Json& m) { m["code_streams"] = "sideways"; });
  says("no text 'code_streams'", [](Json& m) { m["code_streams"] = 1; });
  says("do not go together", [](Json& m) { m["streams"][0]["compression"] = "brotli"; });
  says("do not go together", [](Json& m) { m["streams"].back()["compression"] = "adaptive"; });
}

TEST(ArtifactFile, DamagedOrdersAreRefused) {
  Artifact artifact = sample_artifact();
  const std::string bytes =
      serialize_artifact(artifact, Compression::zlib, nullptr, 0, CodeStreams::role_ordered);
  EXPECT_TRUE(parse_artifact(bytes, "orders") == artifact);
  // Two orders of 12 rows read as those of other matrices: rows that are not there.
  const std::string forged_file = forged_json(bytes, [](Json& m) { m["code_streams"] = "role_all_ordered"; });
  EXPECT_TRUE(contains(artifact_refusal(forged_file), "declares"));
}

}  // namespace
}  // namespace mulligan::artifact_file_test
