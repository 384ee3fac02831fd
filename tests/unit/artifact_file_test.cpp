// The artifact file: round trips, and every way in which bytes can be wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mulligan/half.hpp>

#include "framework/artifact/byte_layout.h"
#include "framework/artifact/quantize.h"
#include "framework/core/philox.h"
#include "tests/support/long_tests.h"
#include "tests/unit/artifact_damage.h"

namespace mulligan::artifact_file_test {
namespace {

constexpr Compression every_compression[] = {Compression::brotli, Compression::zlib};

std::vector<float> normal_weights(std::size_t count, const std::string& purpose) {
  std::vector<float> weights(count);
  PhiloxStream(7, purpose).fill_normal(weights, 0.05);
  return weights;
}

QuantizedTensor integer_tensor(const std::string& name, std::int64_t rows, std::int64_t columns, int bits) {
  QuantizedTensor tensor{name, {rows, columns}, TensorFormat::integer, bits, {}, {}, {}};
  const PhiloxStream random(11, name);
  const int qmax = (1 << (bits - 1)) - 1;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const double code = random.normal(static_cast<std::uint64_t>(i)) * qmax / 4.0;
    tensor.codes.push_back(static_cast<std::int8_t>(std::clamp(code, -1.0 * qmax, 1.0 * qmax)));
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    tensor.scales.push_back(
        sdk::half_bits(static_cast<float>(0.01 + 0.01 * random.uniform(static_cast<std::uint64_t>(r)))));
  }
  return tensor;
}

// Every format, every width, a tensor of rank 1 and one of rank 3.
Artifact sample_artifact() {
  Artifact artifact;
  artifact.configuration = "[model]\nlayers = 2\n";
  artifact.data.tokenizer_sha256 = std::string(64, 'a');
  for (int bits = 2; bits <= 8; ++bits) {
    artifact.tensors.push_back(integer_tensor("integer" + std::to_string(bits), 6, 11, bits));
  }
  artifact.tensors.push_back(quantize_int8_rows("gate", {3, 8}, normal_weights(24, "gate")));
  artifact.tensors.push_back(store_as(TensorFormat::fp16, "scale", {17}, normal_weights(17, "scale")));
  artifact.tensors.push_back(store_as(TensorFormat::bf16, "brain", {5, 2, 2}, normal_weights(20, "brain")));
  artifact.tensors.push_back(store_as(TensorFormat::fp32, "full", {9}, normal_weights(9, "full")));
  return artifact;
}

TEST(ArtifactFile, RoundTripsBitForBitInEveryCompression) {
  const Artifact artifact = sample_artifact();
  for (const Compression compression : every_compression) {
    SCOPED_TRACE(word_of(compression));
    const std::string bytes = serialize_artifact(artifact, compression);
    const Artifact again = parse_artifact(bytes, "sample");
    EXPECT_TRUE(again == artifact);
    EXPECT_EQ(serialize_artifact(again, compression), bytes);
    EXPECT_EQ(serialize_artifact(artifact, compression, nullptr, 1), bytes) << "depends on the threads";
  }
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
  ArtifactSizes sizes;
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::brotli, &sizes);
  EXPECT_EQ(sizes.total_bytes, bytes.size());
  std::uint64_t streams = sizes.overhead_bytes;
  double tensors = 0;
  for (const ArtifactStream& stream : sizes.streams) streams += stream.bytes;
  for (const double bytes : sizes.tensors) tensors += bytes;
  EXPECT_EQ(streams, bytes.size());
  EXPECT_NEAR(tensors, static_cast<double>(bytes.size() - sizes.overhead_bytes), 1e-6);
}

// Codes that use their whole width pack; codes around zero leave bytes of low entropy.
TEST(ArtifactFile, TheLayoutIsChosenByTheResultingSize) {
  Artifact uniform, peaked;
  uniform.tensors = {integer_tensor("w", 64, 256, 6)};
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
  EXPECT_EQ(sizes.streams.at(0).content, "codes6");
}

// The layout of a part beyond 4 MiB is found out on a piece of it; the whole is written.
TEST(ArtifactFile, LargePartsRoundTrip) {
  Artifact large;
  // Just beyond 4 MiB of codes; Brotli at its strongest takes seconds for them.
  const std::int64_t rows = long_tests() ? 3000 : 2700;
  large.tensors = {integer_tensor("w", rows, 1600, 5)};
  ArtifactSizes sizes;
  const std::string bytes =
      serialize_artifact(large, long_tests() ? Compression::brotli : Compression::zlib, &sizes);
  EXPECT_GE(sizes.streams.at(0).raw_bytes, static_cast<std::uint64_t>(rows) * 1600U * 5U / 8U);
  EXPECT_TRUE(parse_artifact(bytes, "large") == large);
}

TEST(ArtifactFile, PackedIntegersRoundTrip) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (const std::int64_t columns : {1, 7, 8, 9, 64}) {
      const QuantizedTensor tensor = integer_tensor("p", 3, columns, bits);
      const std::string packed = pack_integers(tensor.codes, bits);
      EXPECT_EQ(packed.size(), packed_bytes(tensor.codes.size(), bits));
      EXPECT_EQ(unpack_integers(packed, tensor.codes.size(), bits), tensor.codes);
    }
  }
}

TEST(ArtifactFile, TruncationAtEveryByteIsRefused) {
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::brotli);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(artifact_refusal(bytes.substr(0, length)).empty()) << length;
    EXPECT_FALSE(artifact_refusal(resealed(bytes.substr(0, length))).empty())
        << length << " with the checksum corrected";
  }
  EXPECT_FALSE(artifact_refusal(bytes + "x").empty());
  EXPECT_TRUE(contains(artifact_refusal(resealed(bytes + "x")), "after its last part"));
}

TEST(ArtifactFile, EveryFlippedBitIsNoticed) {
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::brotli);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(artifact_refusal(changed).empty()) << "byte " << i;
  }
}

// Random damage whose checksum was corrected, so that it reaches the parser: an artifact or a data_error,
// never anything else. (Run under sanitizers, this shows that no read leaves its buffer.)
TEST(ArtifactFile, RandomDamageBehindTheChecksum) {
  int accepted = 0, refused = 0;
  for (const Compression compression : every_compression) {
    const std::string bytes = serialize_artifact(sample_artifact(), compression);
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
        parse_artifact(resealed(changed), "damaged", std::uint64_t{1} << 20);
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_EQ(accepted + refused, 2000 * static_cast<int>(std::size(every_compression)));
  EXPECT_GT(refused, 3000);
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

TEST(ArtifactManifest, UnchangedItIsRead) {
  const std::string bytes = serialize_artifact(sample_artifact(), Compression::brotli);
  EXPECT_TRUE(parse_artifact(forged(bytes, [](std::string&) {}), "same") == sample_artifact());
}

TEST(ArtifactManifest, WrongEntriesHaveTheirOwnSentences) {
  const auto says = [&](const char* from, const char* to, const char* sentence) {
    EXPECT_TRUE(contains(refused_after(from, to), sentence))
        << from << " -> " << to << ": " << refused_after(from, to);
  };
  says("\"configuration\":", "\"konfiguration\":", "no text 'configuration'");
  says("\"tensors\":[", "\"tensors\":7,\"rest\":[", "no list 'tensors'");
  says("\"streams\":[", "\"streams\":[1,", "not an object");
  says("\"shape\":[6,11]", "\"shape\":[6,0]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[6,-11]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[1,2,3,4,5]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[2147483648,2147483648]", "larger than any");
  says("\"shape\":[6,11]", "\"shape\":[4294967296,1]", "shape");
  says("\"shape\":[6,11]", "\"shape\":[6,12]", "declares");
  says("\"name\":\"integer3\"", "\"name\":\"integer2\"", "twice");
  says("\"format\":\"int\"", "\"format\":\"float\"", "unknown format 'float'");
  says("\"bits\":2", "\"bits\":9", "with 9 bits");
  says("\"bits\":2", "\"bits\":-2", "no whole number 'bits'");
  says("\"content\":\"codes3\"", "\"content\":\"codes9\"", "need 'codes3'");
  says("\"layout\":\"", "\"layout\":\"un", "unknown layout");
  says("\"compression\":\"brotli\"", "\"compression\":\"gzip\"", "unknown compression 'gzip'");
  for (const std::string older : {"xz", "zstd"})
    says("\"compression\":\"brotli\"", ("\"compression\":\"" + older + "\"").c_str(),
         ("unknown compression '" + older + "'").c_str());
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
  EXPECT_TRUE(contains(artifact_refusal(resealed(newer)), "format version 9"));
  EXPECT_THROW(read_artifact("/nowhere/at/all.mulligan"), Error);
}

}  // namespace
}  // namespace mulligan::artifact_file_test
