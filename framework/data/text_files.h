// The files that text inputs name, and what each of them holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

struct TextFiles {
  std::vector<std::filesystem::path> files;   // inputs as given, files of a folder by path
  std::vector<std::filesystem::path> hidden;  // hidden files and folders, which are left out
  // Others that are left out, with the reason.
  std::vector<std::pair<std::filesystem::path, std::string>> left_out;
  std::uint64_t links = 0;  // symbolic links to files and folders that were followed
};

// The files of folders and single files. A symbolic link is followed once: a folder or linked file that was found
// before, by device and inode, is left out. Throws data_error for an input that is neither a folder nor a file, and
// for a folder that cannot be read.
TextFiles find_text_files(const std::vector<std::filesystem::path>& inputs);

// What a file holds in place of text in UTF-8: text in which every character takes at least two bytes, or a format
// that is compressed or none of text.
struct OtherContents {
  std::string shown;    // "UTF-16 (little-endian, by its byte order mark)"; "": none
  std::string command;  // that makes text of it: {0} is the file, {1} another that is written
};
OtherContents other_contents(std::string_view file);
// A format alone, which its first bytes say.
OtherContents signed_contents(std::string_view file);

enum class TextForm {
  plain,            // one document
  json_lines,       // a document per line, by the file's name
  found_lines,      // the same by its contents alone
  foreign_lines,    // objects per line without the text's key: one document
  json_collection,  // one JSON value that holds several: one document
  other_bytes,      // one document of bytes that are no UTF-8
};
// What the name and the beginning of a file say of its contents.
struct TextFileLook {
  TextForm form = TextForm::plain;
  OtherContents other;
};
// `key`: of the text in a line's object. Throws data_error for a file that cannot be read.
TextFileLook look_at_text_file(const std::filesystem::path& file, const std::string& key);

// The text of one line of JSON Lines, or what is wrong with it.
struct JsonLine {
  std::string text;
  std::uint64_t source_bytes = 0;  // what the key "source_bytes" says; else the text's bytes
  std::string problem;             // "": none
};
JsonLine read_json_line(std::string_view line, const std::string& key);

}  // namespace mulligan
