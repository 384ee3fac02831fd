// What strict rules ask of a byte count: a text next to the shards. And that text is counted, whatever tokens spell.
#include "framework/eval/validation_bytes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/data/manifest.h"
#include "framework/eval/evaluate.h"
#include "tests/unit/data_support.h"
#include "tools/prepare/prepare.h"

namespace mulligan::eval_validation_bytes_test {
namespace {

namespace fs = std::filesystem;

// A folder with prepared documents; between two words of those that are scored stand `spaces`.
fs::path prepared(const std::string& name, const std::string& transform, int spaces) {
  const fs::path texts = fresh_folder(name + "_texts");
  PrepareOptions options;
  options.output = fresh_folder(name) / "data";
  options.vocab_size = 340;
  options.normalization = "nmt_nfkc";
  options.transform = transform;
  for (const bool scored : {false, true}) {
    std::string lines;
    std::uint32_t state = scored ? 9 : 7;
    for (int i = 0; i < (scored ? 10 : 60); ++i) {
      std::string text;
      for (int w = 0; w < 40; ++w) {
        for (int letter = 0; letter < 5; ++letter) {
          state = state * 1664525u + 1013904223u;
          text += "bdgklmnrstaeioue"[(state >> 16) % 16];
        }
        text += std::string(scored ? static_cast<std::size_t>(spaces) : 1, ' ');
      }
      lines += nlohmann::json{{"text", text + "end"}}.dump() + "\n";
    }
    const fs::path file = texts / (scored ? "scored.jsonl" : "trained.jsonl");
    write_file_atomically(file, lines);
    (scored ? options.validation_inputs : options.inputs) = {file};
  }
  prepare(options);
  return options.output;
}

DataConfig data_config(const fs::path& folder) {
  DataConfig data;
  data.validation = folder.string();
  data.tokenizer = (folder / "tokenizer.model").string();
  return data;
}

std::string unproven(const DataConfig& data) {
  return unproven_bytes(load_validation(data, 340), data);
}

// The same ids with other letters in the tokenizer's pieces are other bytes, and no check of ids finds that.
TEST(ValidationBytes, PlainTextIsProvenByATextNextToTheShards) {
  const fs::path folder = prepared("bytes_plain", "", 1);
  DataConfig data = data_config(folder);
  EXPECT_EQ(unproven(data), "");
  write_file_atomically(folder / "validation.txt", read_file(folder / "validation.txt") + "more");
  EXPECT_TRUE(contains(unproven(data), "is not the text that the validation shards hold"));
  fs::remove(folder / "validation.txt");
  EXPECT_TRUE(contains(unproven(data), "no original documents"));
  fs::remove(folder / "manifest.json");
  EXPECT_TRUE(contains(unproven(data), "no original documents"));
}

// The tokenizer reads one space of twenty. The other nineteen are bytes of the original, and the log says how many.
TEST(ValidationBytes, BytesThatNoTokenSpellsAreTheOriginals) {
  for (const char* transform : {"", "caseops"}) {
    EXPECT_EQ(unproven(data_config(prepared("bytes_one_space", transform, 1))), "");
    const fs::path folder = prepared("bytes_spaces", transform, 20);
    EXPECT_EQ(unproven(data_config(folder)), "");
    const ValidationSet set = load_validation(data_config(folder), 340);
    EXPECT_EQ(set.counter()->count(set.tokens), load_manifest(folder).validation.source_bytes);
  }
  EXPECT_TRUE(contains(load_validation(data_config(prepared("bytes_spaces", "", 20)), 340).byte_note,
                       "its tokens spell"));
}

}  // namespace
}  // namespace mulligan::eval_validation_bytes_test
