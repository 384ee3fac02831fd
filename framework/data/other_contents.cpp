// Files that hold something else than text in UTF-8.
#include <fmt/format.h>

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

// Text of Latin letters has zeros at the same places of each unit, and only there.
OtherContents wide_without_mark(std::string_view head) {
  std::size_t zeros[4] = {}, units = head.size() / 4;
  for (std::size_t i = 0; i < 4 * units; ++i) zeros[i % 4] += head[i] == '\0' ? 1 : 0;
  const auto many = [&](std::size_t place) { return zeros[place] * 4 >= units * 3; };
  const auto few = [&](std::size_t place) { return zeros[place] * 8 <= units; };
  if (few(0) && many(2) && many(3)) return without_mark(32, true);
  if (many(0) && many(1) && few(3)) return without_mark(32, false);
  if (few(0) && many(1) && few(2) && many(3)) return without_mark(16, true);
  if (many(0) && few(1) && many(2) && few(3)) return without_mark(16, false);
  return {};
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
  return head.size() < fewest_bytes ? OtherContents() : wide_without_mark(head);
}

}  // namespace mulligan
