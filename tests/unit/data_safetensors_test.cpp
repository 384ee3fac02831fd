// Safetensors files: a round trip of every dtype, and one refusal per way a header can lie.
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/safetensors.h"
#include "tests/support/sentence.h"

namespace mulligan::data_safetensors_test {
namespace {

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / ("safetensors_" + name);
}

// A file with the given header text and `data_bytes` zero bytes after it.
std::filesystem::path file_with_header(const std::string& name, const std::string& header,
                                       std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += header + std::string(data_bytes, '\0');
  write_file_atomically(scratch(name), bytes);
  return scratch(name);
}

std::string refusal(const std::filesystem::path& path) {
  const std::string said = refusal_of(ExitCode::bad_data, [&] { SafetensorsFile file(path); });
  EXPECT_TRUE(said.empty() || contains(said, path.filename().string()));
  return said;
}

TEST(Safetensors, RoundTripsEveryTypeAlignedWithMetadata) {
  const std::vector<double> wide{1.5, -2.0};
  const std::vector<std::uint8_t> narrow{7, 8, 9};
  std::vector<StoredTensor> tensors{{"odd", MLG_U8, {3}, std::as_bytes(std::span(narrow))},
                                    {"empty", MLG_F32, {0, 4}, {}}};
  for (const DType type : {MLG_F64, MLG_F32, MLG_F16, MLG_BF16, MLG_I64, MLG_I32, MLG_U16, MLG_I8}) {
    const auto size = static_cast<std::int64_t>(sdk::dtype_bytes(type));
    tensors.push_back(
        {"t." + std::string(stored_name(type)), type, {2, 8 / size}, std::as_bytes(std::span(wide))});
  }
  tensors[2].shape = {2};  // F64: two elements of eight bytes
  write_safetensors(scratch("round_trip"), tensors, {{"step", "12"}});

  const SafetensorsFile file(scratch("round_trip"));
  EXPECT_EQ(file.metadata().at("step"), "12");
  ASSERT_EQ(file.tensors().size(), tensors.size());
  const std::byte* base = file.tensors().front().bytes.data();
  for (const StoredTensor& written : tensors) {
    const StoredTensor& read = file.at(written.name);
    EXPECT_EQ(read.type, written.type);
    EXPECT_EQ(read.shape, written.shape);
    EXPECT_TRUE(std::equal(read.bytes.begin(), read.bytes.end(), written.bytes.begin(), written.bytes.end()));
    EXPECT_EQ((read.bytes.data() - base) % static_cast<std::ptrdiff_t>(sdk::dtype_bytes(read.type)), 0)
        << read.name;
  }
  EXPECT_EQ(file.at("t.F64").copy<double>(), wide);
  EXPECT_EQ(file.find("absent"), nullptr);
  EXPECT_THROW(file.at("absent"), Error);
}

TEST(Safetensors, RefusesEveryKindOfCorruptHeader) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(refusal(file_with_header("good", good, 8)), "");
  EXPECT_EQ(refusal(file_with_header("null_metadata", R"({"__metadata__":null})", 0)), "");
  const struct {
    const char* name;
    std::string header;
    std::size_t data_bytes;
    const char* said;
  } cases[] = {
      {"not_json", "{\"a\":", 8, "not a JSON object"},
      {"array", "[]", 0, "not a JSON object"},
      {"twice",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1, "twice"},
      {"no_dtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8, "no dtype"},
      {"dtype", R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8, "unknown dtype"},
      {"negative", R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "invalid shape"},
      {"fraction", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.5]}})", 8, "invalid data_offsets"},
      {"beyond", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7, "in a data section of 7"},
      {"reversed", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "8..0"},
      {"wrong_size", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "does not fit"},
      {"overflow", R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
       "does not fit"},
      {"overlap",
       R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6, "overlap"},
      {"gap",
       R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})",
       6, "gap"},
      {"trailing", good, 12, "cover 8 bytes of a data section of 12"},
      {"metadata", R"({"__metadata__":{"step":1}})", 0, "not a string"},
      {"byte_order_mark", "\xEF\xBB\xBF" + good, 8, "not JSON"},
      {"zero_byte", good + '\0', 8, "not JSON"},
  };
  for (const auto& test : cases) {
    const std::string message = refusal(file_with_header(test.name, test.header, test.data_bytes));
    EXPECT_NE(message.find(test.said), std::string::npos) << test.name << ": " << message;
  }
}

TEST(Safetensors, RefusesShortFilesAndLyingLengths) {
  write_file_atomically(scratch("short"), "1234");
  EXPECT_NE(refusal(scratch("short")).find("4 bytes"), std::string::npos);
  write_file_atomically(scratch("huge"), std::string(16, '\xff'));
  EXPECT_NE(refusal(scratch("huge")).find("claims"), std::string::npos);
  EXPECT_THROW(SafetensorsFile(scratch("missing")), Error);
}

TEST(Safetensors, WriterRefusesAShapeThatDoesNotFitAndRepeatedNames) {
  const std::vector<float> values{1, 2};
  const auto bytes = std::as_bytes(std::span(values));
  EXPECT_THROW(write_safetensors(scratch("bad"), {{"a", MLG_F32, {3}, bytes}}), Error);
  EXPECT_THROW(write_safetensors(scratch("bad"), {{"a", MLG_F32, {2}, bytes}, {"a", MLG_F32, {2}, bytes}}),
               Error);
  EXPECT_THROW(write_safetensors(scratch("bad"), {{"__metadata__", MLG_F32, {2}, bytes}}), Error);
  EXPECT_FALSE(std::filesystem::exists(scratch("bad")));
}

}  // namespace
}  // namespace mulligan::data_safetensors_test
