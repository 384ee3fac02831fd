// Weights to and from other trainers: number formats, the magnitude test, name maps, every bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <mulligan/kernel.hpp>

#include "framework/checkpoint/compare.h"
#include "framework/checkpoint/float_formats.h"
#include "framework/checkpoint/weight_exchange.h"
#include "framework/core/file.h"
#include "framework/core/philox.h"
#include "tests/unit/checkpoint_support.h"

namespace mulligan::checkpoint_exchange_test {
namespace {

namespace fs = std::filesystem;
using test_support::ScratchFolder;

std::vector<float> gaussian(std::size_t count, double scale, const char* purpose = "weights") {
  std::vector<float> values(count);
  PhiloxStream(7, purpose).fill_normal(values, scale);
  return values;
}

TEST(FloatFormats, EveryHalfDecodesToItsValueAndBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const int exponent = (half >> 10) & 31, mantissa = half & 1023;
    double expected = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) expected = mantissa ? NAN : INFINITY;
    if (half & 0x8000) expected = -expected;
    const float decoded = sdk::half_value(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(decoded)) << bits;
      ASSERT_TRUE(std::isnan(sdk::half_value(sdk::half_bits(decoded)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(decoded), expected) << bits;
      ASSERT_EQ(sdk::half_bits(decoded), half) << bits;
    }
    const float wide = static_cast<float>(std::bit_cast<sdk::bfloat16>(half));
    if (!std::isnan(wide)) {
      ASSERT_EQ(sdk::bfloat16(wide).bits, half) << bits;
    }
  }
}

// The nearest half by search, ties to even: any two neighbours, their middle and the numbers next to it.
TEST(FloatFormats, HalvesRoundToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
    const float middle = (sdk::half_value(low) + sdk::half_value(high)) / 2;
    ASSERT_EQ(sdk::half_bits(middle), bits % 2 ? high : low) << bits;
    ASSERT_EQ(sdk::half_bits(std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(sdk::half_bits(std::nextafter(middle, 1e9f)), high) << bits;
  }
  EXPECT_EQ(sdk::half_bits(65519.0f), 0x7bff);
  EXPECT_EQ(sdk::half_bits(65520.0f), 0x7c00);
  EXPECT_EQ(sdk::bfloat16(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80);
  EXPECT_EQ(sdk::bfloat16(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82);
  EXPECT_EQ(sdk::bfloat16(std::bit_cast<float>(0x3f808001u)).bits, 0x3f81);
}

TEST(Magnitudes, FewElementsSayNothing) {
  EXPECT_EQ(test_magnitudes(std::vector<float>(4095, 1.0f)).verdict, MagnitudeVerdict::plausible);
  EXPECT_EQ(test_magnitudes(std::vector<float>(4096, 1.0f)).verdict, MagnitudeVerdict::bf16_read_as_f16);
  EXPECT_EQ(test_magnitudes(std::vector<float>(100000, 0.0f)).count, 0U);
}

// Theirs: two projections per layer [in, out], an embedding and a gain. Ours: one bank [4, 64, 96].
class Exchange : public ::testing::Test {
 protected:
  static constexpr std::int64_t rows = 64, columns = 96;

  Exchange() {
    for (int layer = 0; layer < 2; ++layer) {
      add(fmt::format("layer.{}.q", layer), {columns, rows});
      add(fmt::format("layer.{}.o", layer), {columns, rows});
      add(fmt::format("layer.{}.rotary", layer), {4});
    }
    add("embed", {100, rows});
    add("gain", {rows});
    write_map(R"(ignore = ["*.rotary"]
[[tensor]]
theirs = "layer.{i}.q"
ours = "bank"
slice = 0
repeat = 2
transpose = true
[[tensor]]
theirs = "layer.{i}.o"
ours = "bank"
slice = 2
repeat = 2
transpose = true
[[tensor]]
theirs = "embed"
ours = "emb"
[[tensor]]
theirs = "gain"
ours = "gain"
)");
  }
  void add(const std::string& name, std::vector<std::int64_t> shape) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    values_[name] = gaussian(count, 0.02, name.c_str());
    shapes_[name] = std::move(shape);
  }
  void write_map(const std::string& text) { std::ofstream(scratch_ / "map.toml") << text; }
  fs::path write_theirs(DType type, DType claimed) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<StoredTensor> tensors;
    for (const auto& [name, values] : values_) {
      bytes.push_back(encode_weights(values, type));
      tensors.push_back({name, claimed, shapes_.at(name), bytes.back()});
    }
    write_safetensors(scratch_ / "theirs.safetensors", tensors);
    return scratch_ / "theirs.safetensors";
  }
  fs::path write_theirs(DType type) { return write_theirs(type, type); }
  std::size_t import(DType target = MLG_F32) {
    return import_weights({SafetensorsFile(scratch_ / "theirs.safetensors")},
                          read_name_map(scratch_ / "map.toml"), model_, target, scratch_ / "ours.safetensors",
                          {});
  }

  const std::vector<WeightSpec> model_{
      {"bank", {4, rows, columns}, true}, {"emb", {100, rows}, true}, {"gain", {rows}, false}};
  std::map<std::string, std::vector<float>> values_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  ScratchFolder scratch_;
};

TEST_F(Exchange, EveryElementComesToItsPlace) {
  write_theirs(MLG_F32);
  EXPECT_EQ(import(), 3u);
  const SafetensorsFile ours(scratch_ / "ours.safetensors");
  const auto bank = ours.at("bank").copy<float>();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto theirs = static_cast<std::size_t>(column * rows + row);
      const auto at = [&](std::int64_t entry) {
        return bank[static_cast<std::size_t>((entry * rows + row) * columns + column)];
      };
      ASSERT_EQ(at(1), values_["layer.1.q"][theirs]);
      ASSERT_EQ(at(2), values_["layer.0.o"][theirs]);
    }
  }
  EXPECT_EQ(ours.at("gain").copy<float>(), values_["gain"]);
}

// As transformers writes a large model: several files, and an index that says which tensor lies in which.
TEST_F(Exchange, SeveralFilesByTheirIndex) {
  const std::vector<float> one{1, 2}, two{3};
  write_safetensors(scratch_ / "1.safetensors", {{"a", MLG_F32, {2}, std::as_bytes(std::span(one))}});
  write_safetensors(scratch_ / "2.safetensors", {{"b", MLG_F32, {1}, std::as_bytes(std::span(two))}});
  const auto open = [&](const std::string& map) {
    write_file_atomically(scratch_ / "i.json", R"({"metadata":{"total_size":12},"weight_map":)" + map + "}");
    return open_indexed(scratch_ / "i.json");
  };
  const std::vector<SafetensorsFile> files = open(R"({"a":"1.safetensors","b":"2.safetensors"})");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].at("a").copy<float>(), one);
  EXPECT_EQ(files[1].at("b").copy<float>(), two);
  NameMap map;
  map.pairs = {{"a", "a"}, {"b", "b"}};
  import_weights(files, map, {{"a", {2}}, {"b", {1}}}, MLG_F32, scratch_ / "joined.safetensors", {});
  EXPECT_EQ(SafetensorsFile(scratch_ / "joined.safetensors").at("b").copy<float>(), two);
  const std::vector<SafetensorsFile> twice{files[0], files[1], SafetensorsFile(scratch_ / "2.safetensors")};
  EXPECT_TRUE(refuses(
      [&] {
        import_weights(twice, map, {{"a", {2}}, {"b", {1}}}, MLG_F32, scratch_ / "x", {});
      },
      "'b' lies in two files"));
  for (const auto& [map, said] : {std::pair{R"({"a":"../1.safetensors"})", "no file of the folder"},
                                  {R"({"a":7})", "no file of the folder"},
                                  {"[]", "has no weight_map"}}) {
    EXPECT_TRUE(refuses([&, map = map] { open(map); }, said)) << map;
  }
}

TEST_F(Exchange, EverySourceFormatWidensExactlyAndComesBackBitForBit) {
  for (const DType type : {MLG_BF16, MLG_F16, MLG_F32}) {
    write_theirs(type);
    import();
    const NameMap map = read_name_map(scratch_ / "map.toml");
    const SafetensorsFile ours(scratch_ / "ours.safetensors");
    export_weights(ours.tensors(), &map, type, scratch_ / "back.safetensors", {});
    const SafetensorsFile theirs(scratch_ / "theirs.safetensors"), back(scratch_ / "back.safetensors");
    for (const TensorDifference& difference : compare_tensors(theirs, back)) {
      EXPECT_TRUE(difference.name.ends_with(".rotary")) << difference.name << " " << difference.what;
    }
  }
}

TEST_F(Exchange, MislabelledFilesAreRefusedAndLeaveNothing) {
  write_theirs(MLG_BF16, MLG_F16);
  std::string sentence = sentence_of([&] { import(); });
  EXPECT_TRUE(contains(sentence, "BF16 bytes decoded as F16"));
  write_theirs(MLG_F16, MLG_BF16);
  sentence = sentence_of([&] { import(); });
  EXPECT_TRUE(contains(sentence, "F16 bytes decoded as BF16"));
  EXPECT_FALSE(fs::exists(scratch_ / "ours.safetensors"));
}

TEST_F(Exchange, WhatDoesNotFitIsNamed) {
  const std::string map = read_name_map(scratch_ / "map.toml").source;
  write_theirs(MLG_F32);
  const auto refused = [&](const std::string& text) {
    write_map(text);
    return sentence_of([&] { import(); });
  };
  const std::string rest =
      "[[tensor]]\ntheirs = \"embed\"\nours = \"emb\"\n[[tensor]]\ntheirs = \"gain\"\nours = \"gain\"\n";
  const auto q = [](const std::string& more) {
    return "ignore = [\"*.rotary\", \"*.o\"]\n[[tensor]]\ntheirs = \"layer.{i}.q\"\nours = \"bank\"\n" + more;
  };
  EXPECT_TRUE(contains(refused(q("repeat = 2\nslice = 0\n") + rest), "transposed"));
  EXPECT_TRUE(contains(refused(q("repeat = 2\nslice = 0\ntranspose = true\n") + rest), "bank (entry 2)"));
  EXPECT_TRUE(contains(refused(q("repeat = 2\nslice = 3\ntranspose = true\n") + rest), "entry 4"));
  EXPECT_TRUE(contains(refused(q("repeat = 3\nslice = 0\ntranspose = true\n") + rest), "layer.2.q"));
  EXPECT_TRUE(contains(refused(rest), "tensors of the file"));
  EXPECT_TRUE(contains(refused(q("slise = 0\n")), "slice"));
  EXPECT_TRUE(contains(refused("ignore = []\n"), "[[tensor]]"));
  EXPECT_TRUE(contains(refused(rest + "[[tensor]]\ntheirs = \"embed\"\nours = \"gain\"\n"), "twice"));
}

TEST_F(Exchange, AnImportMayNarrowButNotTakeWhatTheFormatCannotHold) {
  values_["gain"][3] = 70000.0f;
  write_theirs(MLG_F32);
  EXPECT_EQ(import(MLG_BF16), 3u);
  EXPECT_EQ(SafetensorsFile(scratch_ / "ours.safetensors").at("emb").type, MLG_BF16);
  EXPECT_TRUE(refuses([&] { import(MLG_F16); }, "70000"));
}

TEST_F(Exchange, DifferencesAreCountedAndMeasured) {
  write_theirs(MLG_F32);
  fs::rename(scratch_ / "theirs.safetensors", scratch_ / "first.safetensors");
  values_["gain"][5] += 0.25f;
  values_.erase("embed");
  write_theirs(MLG_F32);
  const auto differences = compare_tensors(SafetensorsFile(scratch_ / "first.safetensors"),
                                           SafetensorsFile(scratch_ / "theirs.safetensors"));
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].name, "embed");
  EXPECT_EQ(differences[0].what, "only in the first");
  EXPECT_TRUE(contains(differences[1].what, "1 of 64 elements, first at 5, at most by 0.25"));
}

}  // namespace
}  // namespace mulligan::checkpoint_exchange_test
