// Small files that would cost a reader its stack or gigabytes of memory.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "framework/artifact/artifact_file.h"
#include "framework/artifact/compression.h"
#include "framework/checkpoint/manifest.h"
#include "framework/config/run_config.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"
#include "framework/core/safetensors.h"
#include "framework/data/manifest.h"
#include "framework/data/text_source.h"
#include "framework/report/metrics_file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::hostile_input_test {
namespace {

namespace fs = std::filesystem;
using test_support::ScratchFolder;

// `before`, then lists nested so deep that any recursion over them leaves the stack, then `after`.
std::string nested(const std::string& before, const std::string& after) {
  constexpr std::size_t levels = 200'000;
  return before + std::string(levels, '[') + std::string(levels, ']') + after;
}

// An artifact of this manifest and these bytes after it, with sizes and checksum as they should be.
std::string artifact_of(const std::string& manifest, const std::string& streams = {}) {
  return assembled_artifact(compress(Compression::brotli, manifest), manifest.size(), streams);
}

TEST(ParseJson, CountsNestingOutsideOfStringsOnly) {
  EXPECT_TRUE(nested_within(R"({"a": [1, {"b": []}]})", 4));
  EXPECT_FALSE(nested_within(R"({"a": [1, {"b": []}]})", 3));
  EXPECT_TRUE(nested_within(R"(["[[[", "\"[[[", "\\"])", 1));
  EXPECT_FALSE(nested_within(R"(["\\", [1]])", 1));
  EXPECT_TRUE(nested_within(R"([[],[],[]])", 2));
}

TEST(HostileInput, JsonNestedDeeplyIsRefusedByEveryReader) {
  const ScratchFolder folder;
  const auto file = [&](const char* name, const std::string& text) {
    write_file_atomically(folder / name, text);
    return folder / name;
  };
  const fs::path manifest = file("manifest.json", nested(R"({"format": )", "}"));
  EXPECT_TRUE(refuses([&] { load_manifest(manifest); }, "manifest.json"));

  const std::string checkpoint = nested(R"({"format": "mulligan checkpoint", "format_version": )", "}");
  EXPECT_TRUE(refuses([&] { manifest_from_json(checkpoint, "m.json"); }, "m.json"));

  const std::string header = nested(R"({"a": )", "}");
  const std::uint64_t length = header.size();
  const fs::path tensors =
      file("a.safetensors", std::string(reinterpret_cast<const char*>(&length), sizeof length) + header);
  EXPECT_TRUE(refuses([&] { SafetensorsFile{tensors}; }, "a.safetensors"));

  const fs::path text = file("text.jsonl", nested(R"({"text": )", "}"));
  EXPECT_TRUE(refuses([&] { TextSource({text}).text(0); }, "text.jsonl:1"));

  const std::string artifact = artifact_of(nested(R"({"configuration": )", "}"));
  EXPECT_TRUE(refuses([&] { parse_artifact(artifact, "x.mulligan"); }, "x.mulligan"));

  const fs::path metrics = file("metrics.jsonl", nested(R"({"event": )", "}\n") + R"({"step": 1})" + "\n");
  const std::string before = read_file(metrics);
  EXPECT_TRUE(refuses([&] { MetricsFile(metrics, 3); }, "metrics.jsonl:1"));
  EXPECT_EQ(read_file(metrics), before);
}

TEST(HostileInput, NumbersOfADataManifestAreWholeAndInRange) {
  const ScratchFolder folder;
  Manifest manifest;
  manifest.tokenizer_file = "t.model";
  manifest.validation_text_file = "t.txt";
  manifest.vocabulary = 320;
  save_manifest(folder.path(), manifest);
  const std::string text = read_file(folder / "manifest.json");
  EXPECT_EQ(load_manifest(folder.path()).vocabulary, 320);
  for (const auto& [key, value] : {std::pair("vocabulary", "1099511627776"), std::pair("bos_id", "-1"),
                                   std::pair("duplicates_dropped", "1e300"), std::pair("tokens", "2.5")}) {
    const std::size_t at = text.find("\"" + std::string(key) + "\": ") + std::string(key).size() + 4;
    std::string changed = text;
    write_file_atomically(folder / "manifest.json",
                          changed.replace(at, text.find_first_of(",\n", at) - at, value));
    EXPECT_TRUE(refuses([&] { load_manifest(folder.path()); }, key)) << key;
  }
}

TEST(HostileInput, TomlNestedDeeplyIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  for (const std::string& text : {key + " = 1\n", "[" + key + "]\n", "[[" + key + "]]\n",
                                  "x = " + std::string(100'000, '[') + "\n", "x = {" + key + " = 1}\n"}) {
    EXPECT_TRUE(refuses([&] { parse_run_config(text, "deep.toml"); }, "deep.toml:1")) << text.substr(0, 20);
  }
  EXPECT_TRUE(refuses([&] { parse_run_config("", "run.toml", std::vector{key + "=1"}); }, "--set"));
}

TEST(HostileInput, AFewBytesDoNotDecompressToGigabytes) {
  // 1 GiB of zeros is under 1 KB in Brotli; the reader must refuse it by the declaration alone.
  const std::string text =
      R"({"configuration": "", "data": {}, "streams": [{"content": "fp32", "layout": "bytes",)"
      R"( "compression": "brotli", "raw_bytes": 1073741824, "bytes": 100}], "tensors":)"
      R"( [{"name": "w", "shape": [268435456], "format": "fp32", "bits": 0}]})";
  EXPECT_TRUE(refuses([&] { parse_artifact(artifact_of(text, std::string(100, 'x')), "x.mulligan"); },
                      "1073741824 bytes"));
  // Codes of two bits: 32 MiB packed would be half a gigabyte of weights.
  const std::string codes =
      R"({"configuration": "", "data": {}, "streams": [{"content": "codes2", "layout": "packed",)"
      R"( "compression": "brotli", "raw_bytes": 33554432, "bytes": 100}], "tensors":)"
      R"( [{"name": "w", "shape": [134217728], "format": "int", "bits": 2}]})";
  EXPECT_TRUE(
      refuses([&] { parse_artifact(artifact_of(codes, std::string(100, 'x')), "x.mulligan"); }, "more than"));
  const std::string blank = std::string(60 << 20, ' ') + "{}";
  EXPECT_TRUE(refuses([&] { parse_artifact(artifact_of(blank), "x.mulligan"); }, "manifest"));
}

// Four characters become a node of some hundred bytes.
TEST(HostileInput, AConfigurationHasAtMostAMegabyte) {
  std::string text;
  for (int i = 0; text.size() <= std::size_t{1} << 20; ++i) text += fmt::format("k{} = 1\n", i);
  EXPECT_TRUE(refuses([&] { parse_saved_config(text, "x.toml"); }, "more than the 1048576"));
}

}  // namespace
}  // namespace mulligan::hostile_input_test
