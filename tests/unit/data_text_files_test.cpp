// Which files text inputs name, what is in them, and what is said of those that are no text.
#include "framework/data/text_files.h"

#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "framework/data/text_source.h"
#include "framework/data/tokenizer.h"
#include "tests/unit/data_support.h"
#include "tools/prepare/corpus.h"

namespace mulligan::data_text_files_test {
namespace {

namespace fs = std::filesystem;

std::string sentence(int i) {
  return "sentence " + std::to_string(i) + " of a text about bridges and rivers " + std::to_string(i * i);
}

std::string line(int i) {
  return "{\"id\": " + std::to_string(i) + ", \"text\": \"" + sentence(i) + "\"}\n";
}

std::string lines(int first, int count) {
  std::string all;
  for (int i = first; i < first + count; ++i) all += line(i);
  return all;
}

PrepareOptions options_for(const std::string& name, const std::vector<fs::path>& inputs) {
  PrepareOptions options;
  options.inputs = inputs;
  options.output = fresh_folder(name + "_out") / "data";
  options.vocab_size = 310;
  options.validation_fraction = 0.3;
  return options;
}

std::string reason_for(const TextFiles& found, const fs::path& path) {
  for (const auto& [left_out, reason] : found.left_out)
    if (left_out == path) return reason;
  return {};
}

TEST(TextFiles, LinksAreFollowedOnce) {
  const fs::path folder = fresh_folder("links"), other = fresh_folder("links_other");
  for (const char* name : {"a.txt", "b/c.txt"}) write_file_atomically(folder / name, name);
  for (const char* name : {"d.txt", "e/f.txt"}) write_file_atomically(other / name, name);
  fs::create_directory_symlink(other, folder / "to_folder");
  fs::create_directory_symlink(other, folder / "to_folder_again");
  fs::create_symlink(other / "d.txt", folder / "z_to_file");
  fs::create_symlink(folder / "a.txt", folder / "0_to_own_file");
  fs::create_directory_symlink(folder, folder / "b" / "loop");
  fs::create_symlink("nowhere", folder / "broken");
  fs::create_symlink("circle", folder / "circle");
  fs::create_symlink("/dev/zero", folder / "device");
  fs::create_directory_symlink(folder / "b", other / "back");
  const TextFiles found = find_text_files({folder});
  const std::vector<fs::path> expected = {folder / "a.txt", folder / "b/c.txt", folder / "to_folder/d.txt",
                                          folder / "to_folder/e/f.txt"};
  EXPECT_EQ(found.files, expected);
  EXPECT_EQ(found.links, 1u);
  EXPECT_EQ(found.left_out.size(), 8u);
  EXPECT_TRUE(contains(reason_for(found, folder / "to_folder_again"), "read before"));
  EXPECT_TRUE(contains(reason_for(found, folder / "b/loop"), "read before"));
  EXPECT_TRUE(contains(reason_for(found, folder / "broken"), "nowhere"));
  EXPECT_TRUE(contains(reason_for(found, folder / "circle"), "nowhere"));
  EXPECT_TRUE(contains(reason_for(found, folder / "device"), "neither"));
  EXPECT_EQ(find_text_files({folder, other, folder / "b"}).files.size(), 4u)
      << "folders that were read before";
  EXPECT_EQ(find_text_files({folder / "to_folder"}).files.size(), 4u) << "an input may be a link";
}

TEST(TextFiles, JsonLinesAreKnownByTheirContents) {
  const fs::path folder = fresh_folder("contents");
  const auto form = [&](const std::string& name, const std::string& text, const std::string& key = "text") {
    write_file_atomically(folder / name, text);
    return look_at_text_file(folder / name, key).form;
  };
  EXPECT_EQ(form("a.jsonl", "not json"), TextForm::json_lines);
  EXPECT_EQ(form("a.NDJSON", ""), TextForm::json_lines);
  for (const char* name : {"a.json", "b.txt", "c", "d.jsonl.bak", "e.JSON"}) {
    EXPECT_EQ(form(name, lines(0, 3)), TextForm::found_lines) << name;
    EXPECT_EQ(form(name, line(1)), TextForm::found_lines) << name;
    EXPECT_EQ(form(name, "\xEF\xBB\xBF\r\n\n" + lines(0, 2)), TextForm::found_lines) << name;
    EXPECT_EQ(form(name, "{\"text\": \"cut o\n" + lines(0, 3)), TextForm::found_lines) << name;
    EXPECT_EQ(form(name, lines(0, 3) + "{\"text\": nul"), TextForm::found_lines) << name;
  }
  EXPECT_EQ(form("body.txt", lines(0, 3), "id"), TextForm::found_lines);
  EXPECT_EQ(form("body.txt", lines(0, 3), "body"), TextForm::foreign_lines);
  EXPECT_EQ(form("body.json", lines(0, 3), "body"), TextForm::found_lines) << "whose key is then asked for";
  EXPECT_EQ(form("strings.txt", "\"one\"\n\"two\"\n"), TextForm::plain);
  EXPECT_EQ(form("array.json", "[{\"text\": \"a\"},\n {\"text\": \"b\"}]"), TextForm::json_collection);
  for (const char* text : {"{\n  \"text\": \"a\"\n}\n", "{ code }\n{ more }\n", "{\"name\": \"a package\"}",
                           "", " \n", "{", "text about {\"text\": \"a\"}\n"})
    EXPECT_EQ(form("plain.json", text), TextForm::plain) << text;
  const fs::path code = folder / "plain.cpp";
  write_file_atomically(code, "{\n" + lines(0, 1) + "}\nint main() {\n}\n");
  EXPECT_EQ(look_at_text_file(code, "text").form, TextForm::plain);
}

TEST(TextFiles, ABadLineIsNamedWithItsReasonAndColumn) {
  const auto problem = [](const std::string& text) { return read_json_line(text, "text").problem; };
  const auto expect = [&](const std::string& text, const std::vector<const char*>& parts) {
    for (const char* part : parts) EXPECT_TRUE(contains(problem(text), part));
  };
  EXPECT_EQ(problem(R"({"text": "a"})"), "");
  EXPECT_EQ(problem(R"("a")"), "");
  expect(R"({"text": "lone \ud800 here"})", {"not valid JSON", "column", "surrogate"});
  expect(R"({"text": "lone \udc00 here"})", {"not valid JSON", "column", "surrogate"});
  expect(R"({"text": "a", "score": NaN})", {"column 24", "invalid literal"});
  expect(R"({"text": "a", "score": Infinity})", {"column"});
  expect(R"({"text": "caf)", {"not valid JSON", "column", "quote"});
  expect(R"({"text": "a")", {"not valid JSON", "column 13", "end of input"});
  expect("{\"text\": \"\xC3\xA9\xC3\xA9\" oops}", {"column 17"});
  expect("{\"text\": \"a\tb\"}", {"not valid JSON", "control character"});
  expect("{\"text\": \"\xFF\"}", {"not valid JSON", "UTF-8"});
  expect(R"({'text': 'a'})", {"column 2"});
  expect(R"({"text": "a"} {"text": "b"})", {"column 15", "unexpected '{'; expected end of input"});
  expect(R"({"text": null})", {"the type null"});
  expect(R"({"text": 3})", {"the type number"});
  expect(R"({"text": ["a"]})", {"the type array"});
  expect(R"({"body": "a"})", {"nothing under the key 'text'", "'body'", "--json-key"});
  expect("3", {"not an object"});
  expect("null", {"not an object"});
  EXPECT_LT(problem("{\"text\": \"" + std::string(1000000, 'x')).size(), 300u)
      << "a long line is not printed";
}

TEST(TextFiles, BadLinesAreRefusedOrCounted) {
  const fs::path folder = fresh_folder("bad_lines");
  const std::vector<std::string> bad = {"{\"text\": \"cut", "{\"text\": null}",
                                        "{\"text\": \"a\", \"x\": NaN}", "[]"};
  std::string all = lines(0, 20);
  for (const std::string& one : bad) all += one + "\n" + line(100 + static_cast<int>(all.size()));
  write_file_atomically(folder / "mixed.jsonl", all);
  PrepareOptions options = options_for("bad_lines", {folder});
  const std::string message = sentence_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_TRUE(contains(message, "mixed.jsonl:21: ", "lines without a text: 4", "--skip-bad-lines"));
  options.text.skip_bad_lines = true;
  const PrepareSummary summary = prepare(options);
  EXPECT_EQ(summary.manifest.text.bad_lines_dropped, bad.size());
  EXPECT_EQ(summary.manifest.train.documents + summary.manifest.validation.documents, 24u);
  EXPECT_EQ(load_manifest(options.output).text.bad_lines_dropped, bad.size());
  const std::string changes = read_file(options.output / "changes.jsonl");
  EXPECT_TRUE(contains(changes, "mixed.jsonl:21", "mixed.jsonl:23", "mixed.jsonl:25", "mixed.jsonl:27"));
}

// `unit` bytes of a character each.
std::string wide(std::string_view text, std::size_t unit, bool little, bool marked) {
  std::string out;
  const auto add = [&](std::uint32_t code) {
    for (std::size_t i = 0; i < unit; ++i)
      out += static_cast<char>(code >> (8 * (little ? i : unit - 1 - i)) & 0xFFu);
  };
  if (marked) add(0xFEFF);
  for (const char c : text) add(static_cast<unsigned char>(c));
  return out;
}

TEST(TextFiles, WideEncodingsAreNamed) {
  const std::string text = sentence(1) + "\n" + sentence(2);
  for (const std::size_t unit : {2u, 4u}) {
    for (const bool little : {true, false}) {
      for (const bool marked : {true, false}) {
        const std::string name = "UTF-" + std::to_string(8 * unit);
        const OtherContents found = other_contents(wide(text, unit, little, marked));
        EXPECT_TRUE(found.command.starts_with("iconv -f " + name)) << found.command;
        EXPECT_TRUE(contains(found.shown, little ? "little" : "big", marked ? "by its" : "without"));
      }
    }
  }
  // Single bytes and East Asia's encodings, escapes of a terminal, and noise.
  std::string latin, gbk, terminal, noise;
  std::uint32_t state = 1;
  for (int i = 0; i < 400; ++i) {
    latin += "d\xE9j\xE0 vu, gar\xE7on\n";
    gbk += "\xD5\xE2\xCA\xC7\xD2\xBB\xB8\xF6\xA1\xA3";
    terminal += "\x1B[31mred\x1B[0m \x08\n";
    for (int j = 0; j < 16; ++j) noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  }
  for (const std::string& other :
       {text, latin, gbk, terminal, noise, std::string(1000, '\0'), std::string("a\0b\0", 4), std::string(),
        text + std::string(1, '\0'), std::string("ELF\0\1\0\0\0\2\0\3\0\0\0\0\0", 16)})
    EXPECT_EQ(other_contents(other).shown, "");

  const fs::path folder = fresh_folder("wide");
  for (int i = 0; i < 20; ++i)
    write_file_atomically(folder / fmt::format("a text {}.txt", i), wide(sentence(i), 2, true, true));
  write_file_atomically(folder / "b.jsonl", wide(lines(0, 4), 2, true, true));
  for (int i = 50; i < 70; ++i) write_file_atomically(folder / fmt::format("{}.txt", i), sentence(i));
  PrepareOptions options = options_for("wide", {folder});
  EXPECT_TRUE(refuses([&] { prepare(options); }, ExitCode::bad_data, "UTF-16",
                      "20 other files are no such text", "iconv -f UTF-16 -t UTF-8 '", "--skip-binary"));
  options.text.skip_binary = true;
  const PrepareSummary summary = prepare(options);
  EXPECT_EQ(summary.manifest.text.paths_left_out, 21u);
  EXPECT_EQ(summary.manifest.text.plain_files, 20u);
}

TEST(TextFiles, CompressedFilesAreNamedWithTheirCommand) {
  const std::string gzip("\x1F\x8B\x08\0\0\0\0\0\0\x03stream", 16);
  EXPECT_EQ(other_contents(gzip).command, "gunzip {0}");
  EXPECT_EQ(other_contents("BZh91AY&SY").command, "bunzip2 {0}");
  EXPECT_EQ(other_contents("PAR1\x15").shown, "a Parquet table");
  EXPECT_EQ(other_contents("BZh is a word\n").shown, "");
  const fs::path folder = fresh_folder("compressed");
  for (int i = 0; i < 20; ++i) write_file_atomically(folder / fmt::format("{}.txt", i), sentence(i));
  write_file_atomically(folder / "more.jsonl.gz", gzip);
  PrepareOptions options = options_for("compressed", {folder});
  const std::string message = sentence_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_TRUE(contains(message, "more.jsonl.gz' is compressed with gzip", "`gunzip /"));
  options.text.skip_binary = true;
  EXPECT_EQ(prepare(options).manifest.text.paths_left_out, 1u);
}

TEST(TextFiles, OtherEightBitTextIsKeptAndNamed) {
  const fs::path folder = fresh_folder("latin1");
  for (int i = 0; i < 20; ++i) write_file_atomically(folder / fmt::format("{}.txt", i), sentence(i));
  write_file_atomically(folder / "old.txt", sentence(30) + "d\xE9j\xE0 vu");
  const PrepareSummary summary = prepare(options_for("latin1", {folder}));
  ASSERT_EQ(summary.remarks.size(), 1u);
  EXPECT_EQ(summary.remarks[0].second, TextForm::other_bytes);
  EXPECT_EQ(summary.remarks[0].first.filename(), "old.txt");
  EXPECT_TRUE(summary.manifest.text.kept);
}

TEST(TextFiles, TwoDocumentsAreDividedWhateverTheirDigests) {
  for (int seed = 0; seed < 30; ++seed) {
    const fs::path folder = fresh_folder("two_documents");
    for (int i = 0; i < 2 + seed % 3; ++i)
      write_file_atomically(folder / fmt::format("{}.txt", i), sentence(100 * seed + i));
    for (const double fraction : {0.05, 0.999}) {
      PrepareOptions options = options_for("two_documents", {folder});
      options.validation_fraction = fraction;
      const Corpus corpus(options);
      EXPECT_GE(corpus.validation.size(), 1u) << corpus.manifest.split_rule;
      EXPECT_GE(corpus.train.size(), 1u) << corpus.manifest.split_rule;
    }
  }
}

TEST(TextFiles, ManifestAndRemarksSayHowFilesWereRead) {
  const fs::path folder = fresh_folder("read_as");
  write_file_atomically(folder / "named.jsonl", lines(0, 10));
  write_file_atomically(folder / "found.json", lines(10, 10));
  write_file_atomically(folder / "plain.txt", sentence(50));
  write_file_atomically(folder / "array.json", "[" + line(60) + "," + line(61) + "]");
  const PrepareSummary summary = prepare(options_for("read_as", {folder}));
  const TextRecord& text = summary.manifest.text;
  EXPECT_EQ(text.json_files, 2u);
  EXPECT_EQ(text.json_lines, 20u);
  EXPECT_EQ(text.json_by_contents, 1u);
  EXPECT_EQ(text.plain_files, 2u);
  EXPECT_EQ(summary.remarks.size(), 2u);
  EXPECT_TRUE(refuses([&] { prepare(options_for("read_as_one", {folder / "array.json"})); },
                      ExitCode::bad_data, "array.json' is a JSON array"));
}

TEST(TokenizerFormat, OtherFormatsAreNamed) {
  const auto expect = [](const std::string& bytes, const std::vector<const char*>& parts) {
    const std::string message =
        sentence_of(ExitCode::bad_data, [&] { Tokenizer::from_bytes(bytes, "tokenizer.model"); });
    EXPECT_TRUE(contains(message, "is not a SentencePiece model"));
    for (const char* part : parts) EXPECT_TRUE(contains(message, part));
  };
  expect("IQ== 0\nIg== 1\nIw== 2\n", {"tiktoken", "3 pieces", "mulligan prepare"});
  std::string many;
  for (int i = 0; i < 70000; ++i) many += "IQ== " + std::to_string(i) + "\r\n";
  expect(many, {"tiktoken", "70000 pieces", "at most 65536"});
  expect(R"({"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}})",
         {"Hugging Face tokenizer.json", "tokenizer.model"});
  expect("version https://git-lfs.github.com\noid sha256:00\nsize 3\n", {"git lfs pull"});
  expect("<!DOCTYPE html><html>", {"web page"});
  expect("\x1F\x8B\x08", {"gunzip"});
  expect("[\"a\", \"b\"]", {"a JSON file"});
  expect(std::string("\xFD\x37zXZ\0", 7), {"xz", "unxz"});
  expect("", {"empty"});
}

}  // namespace
}  // namespace mulligan::data_text_files_test
