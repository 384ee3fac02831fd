// Unpacks the source of an evaluation:  unpack PACKAGE FOLDER  (docs/artifact.md). The package is what pack_text() made of
// evaluation_archive().
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "framework/artifact/text_coder.h"

int main(int, char** words) {
  std::ifstream package(words[1], std::ios::binary);
  const std::string packed(std::istreambuf_iterator<char>(package), {});
  const std::string text = mulligan::unpack_text(packed, 1 << 24);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find('\n', at) + 1, end = text.find('\0', begin);
    if (begin == 0 || end == text.npos) return 1;
    const std::filesystem::path file = words[2] / std::filesystem::path(text.substr(at, begin - 1 - at));
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(&text[begin], static_cast<std::streamsize>(end - begin));
    at = end + 1;
  }
}
