// Files that hold something else than text in UTF-8.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/core/utf8.h"
#include "framework/data/text_files.h"

namespace mulligan {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t fewest_bytes = 8, most_bytes = 4096;  // that are looked at

OtherContents without_mark(int bits, bool little) {
  return {fmt::format("UTF-{} ({}-endian, without a byte order mark)", bits, little ? "little" : "big"),
          fmt::format("iconv -f UTF-{}{} -t UTF-8 {{0}} > {{1}}", bits, little ? "LE" : "BE")};
}

struct Signature {
  std::size_t place;
  std::string_view bytes;
  const char *shown, *command;
};
constexpr const char *from_utf16 = "iconv -f UTF-16 -t UTF-8 {0} > {1}",
                     *from_utf32 = "iconv -f UTF-32 -t UTF-8 {0} > {1}";
constexpr Signature signatures[] = {
    // UTF-32LE begins like UTF-16LE.
    {0, "\xFF\xFE\0\0"sv, "UTF-32 (little-endian, by its byte order mark)", from_utf32},
    {0, "\0\0\xFE\xFF"sv, "UTF-32 (big-endian, by its byte order mark)", from_utf32},
    {0, "\xFF\xFE"sv, "UTF-16 (little-endian, by its byte order mark)", from_utf16},
    {0, "\xFE\xFF"sv, "UTF-16 (big-endian, by its byte order mark)", from_utf16},
    {0, "\x1F\x8B\x08"sv, "compressed with gzip", "gunzip {0}"},
    {0, "\x28\xB5\x2F\xFD"sv, "compressed with zstd", "unzstd --rm {0}"},
    {0, "\xFD\x37zXZ\0"sv, "compressed with xz", "unxz {0}"},
    {4, "1AY&SY"sv, "compressed with bzip2", "bunzip2 {0}"},
    {0, "PK\3\4"sv, "a zip archive, or a document that is one", "unzip {0}"},
    {257, "ustar"sv, "a tar archive", "tar -xf {0}"},
    {0, "%PDF-"sv, "a PDF document", "pdftotext {0} {1}"},
    {0, "PAR1"sv, "a Parquet table",
     "python3 -c 'import sys, pandas; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient=\"records\", "
     "lines=True)' {0} {1}"}};

std::uint32_t unit_at(std::string_view bytes, std::size_t place, bool little) {
  const std::uint32_t first = static_cast<unsigned char>(bytes[place]),
                      second = static_cast<unsigned char>(bytes[place + 1]);
  return little ? first | second << 8 : first << 8 | second;
}

// Whether every unit is a character of text: no control character but white space, no half of a pair, none that is private or
// no character.
bool reads_as_utf16(std::string_view bytes, bool little) {
  for (std::size_t i = 0; i + 2 <= bytes.size(); i += 2) {
    const std::uint32_t unit = unit_at(bytes, i, little);
    if (unit >= 0xD800 && unit < 0xDC00) {
      i += 2;
      if (i + 2 > bytes.size()) break;
      const std::uint32_t low = unit_at(bytes, i, little);
      if (low < 0xDC00 || low > 0xDFFF) return false;
      continue;
    }
    const bool blank = unit == '\t' || unit == '\n' || unit == '\r';
    const bool control = (unit < 0x20 && !blank) || (unit >= 0x7F && unit < 0xA0);
    const bool none =
        (unit >= 0xDC00 && unit < 0xF900) || (unit >= 0xFDD0 && unit < 0xFDF0) || unit >= 0xFFFE;
    if (control || none) return false;
  }
  return true;
}

std::size_t different_high_bytes(std::string_view bytes, bool little) {
  std::set<char> seen;
  for (std::size_t i = little ? 1 : 0; i < bytes.size(); i += 2) seen.insert(bytes[i]);
  return seen.size();
}

// Encodings of single bytes and of East Asia write no control characters but white space and escapes. In UTF-16 one byte
// of a character is one again and again.
bool has_control_bytes(std::string_view bytes) {
  const auto count = std::ranges::count_if(
      bytes, [](char c) { return c >= 0 && c < 0x20 && !(c >= '\b' && c <= '\r') && c != 0x1B; });
  return static_cast<std::size_t>(count) * 50 >= bytes.size();
}

OtherContents utf16_without_mark(std::string_view head) {
  head = head.substr(0, head.size() / 2 * 2);
  if (!has_control_bytes(head) || (head.find('\0') == std::string_view::npos && is_utf8(head))) return {};
  const bool little = reads_as_utf16(head, true), big = reads_as_utf16(head, false);
  if (!little && !big) return {};
  // A language has its characters in few blocks.
  return without_mark(
      16, little && (!big || different_high_bytes(head, true) <= different_high_bytes(head, false)));
}

// The bytes of planes and blocks are zero at the same places of each unit, and only there.
OtherContents utf32_without_mark(std::string_view head) {
  head = head.substr(0, head.size() / 4 * 4);
  std::size_t zeros[4] = {}, units = head.size() / 4;
  for (std::size_t i = 0; i < head.size(); ++i) zeros[i % 4] += head[i] == '\0' ? 1 : 0;
  const auto many = [&](std::size_t place) { return zeros[place] * 4 >= units * 3; };
  const auto few = [&](std::size_t place) { return zeros[place] * 20 <= units; };
  const bool little = few(0) && many(2) && many(3), big = many(0) && many(1) && few(3);
  return little || big ? without_mark(32, little) : OtherContents();
}

}  // namespace

OtherContents signed_contents(std::string_view file) {
  for (const Signature& signature : signatures) {
    if (file.size() > signature.place && file.substr(signature.place).starts_with(signature.bytes))
      return {signature.shown, signature.command};
  }
  return {};
}

OtherContents other_contents(std::string_view file) {
  if (OtherContents found = signed_contents(file); !found.shown.empty()) return found;
  const std::string_view head = file.substr(0, most_bytes);
  if (head.size() < fewest_bytes) return {};
  if (OtherContents found = utf32_without_mark(head); !found.shown.empty()) return found;
  return utf16_without_mark(head);
}

}  // namespace mulligan
