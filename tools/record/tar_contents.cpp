#include "tools/record/tar_contents.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>

namespace mulligan::record {
namespace {

constexpr std::size_t block = 512;

std::string text_at(std::string_view header, std::size_t at, std::size_t most) {
  const std::string_view field = header.substr(at, most);
  return std::string(field.substr(0, field.find('\0')));
}

std::optional<std::size_t> octal_at(std::string_view header, std::size_t at, std::size_t most) {
  const std::string text = text_at(header, at, most);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end == text.data()) return {};
  return value;
}

bool has_right_sum(std::string_view header) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < block; ++i)  // the sum's own eight characters count as blanks
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return octal_at(header, 148, 8) == sum;
}

// Whether unpacking it writes into the folder where that is done: readers of a README do.
bool stays_below(const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && path.is_relative() && name.find('\\') == std::string::npos &&
         std::ranges::none_of(path, [](const auto& part) { return part == ".."; });
}

}  // namespace

std::vector<std::pair<std::string, std::string>> tar_contents(std::string_view archive) {
  std::vector<std::pair<std::string, std::string>> files;
  std::set<std::string> names;
  for (std::size_t at = 0;;) {
    if (archive.size() < at + block) throw std::runtime_error("is not a whole archive");
    const std::string_view header = archive.substr(at, block);
    if (header.find_first_not_of('\0') == std::string_view::npos) return files;
    const auto size = octal_at(header, 124, 12);
    if (!has_right_sum(header) || !size) throw std::runtime_error("is not an archive of tar");
    if (header[156] != '0') throw std::runtime_error("holds something other than files");
    at += block;
    if (*size > archive.size() - at) throw std::runtime_error("ends within a file");
    const std::string prefix = text_at(header, 345, 155), base = text_at(header, 0, 100);
    const std::string name = prefix.empty() ? base : prefix + "/" + base;
    if (!stays_below(name)) throw std::runtime_error("holds '" + name + "', which leads out of its folder");
    if (!names.insert(name).second) throw std::runtime_error("holds '" + name + "' twice");
    files.emplace_back(name, std::string(archive.substr(at, *size)));
    at += (*size + block - 1) / block * block;
  }
}

}  // namespace mulligan::record
