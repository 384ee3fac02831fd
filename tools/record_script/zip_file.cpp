#include "tools/record_script/zip_file.h"

#include <fmt/format.h>
#include <lzma.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace mulligan::record_script {
namespace {

constexpr std::uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50;
constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22;
constexpr std::uint64_t zip_limit = 0x7FFFFFFF;

std::uint32_t crc32_of(std::string_view bytes) {
  return lzma_crc32(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), 0);
}

// Little-endian fields at places of an archive.
class ZipFields {
 public:
  explicit ZipFields(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T at(std::uint64_t place) const {
    T value{};
    const std::string_view raw = part(place, sizeof value);
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view part(std::uint64_t place, std::uint64_t count) const {
    if (place > bytes_.size() || count > bytes_.size() - place)
      throw std::runtime_error("is truncated, or states places beyond its end");
    return bytes_.substr(static_cast<std::size_t>(place), static_cast<std::size_t>(count));
  }

 private:
  std::string_view bytes_;
};

// The member whose entry of the central directory begins at `entry`.
std::string_view contents_of(const ZipFields& fields, std::uint64_t entry, const std::string& name) {
  const bool encrypted = fields.at<std::uint16_t>(entry + 8) % 2 != 0;
  const std::uint64_t size = fields.at<std::uint32_t>(entry + 24);
  if (encrypted || fields.at<std::uint16_t>(entry + 10) != 0 || fields.at<std::uint32_t>(entry + 20) != size)
    throw std::runtime_error(fmt::format("has the member '{}' compressed or encrypted", name));
  const std::uint64_t local = fields.at<std::uint32_t>(entry + 42);
  if (fields.at<std::uint32_t>(local) != local_mark)
    throw std::runtime_error(fmt::format("has no member where '{}' should be", name));
  const std::string_view contents = fields.part(
      local + local_bytes + fields.at<std::uint16_t>(local + 26) + fields.at<std::uint16_t>(local + 28),
      size);
  if (crc32_of(contents) != fields.at<std::uint32_t>(entry + 16))
    throw std::runtime_error(fmt::format("has the member '{}' with a checksum that does not fit", name));
  return contents;
}

template <typename... Fields>
void put_fields(std::string& out, Fields... values) {
  (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

}  // namespace

std::map<std::string, std::string_view> zip_members(std::string_view archive) {
  const ZipFields fields(archive);
  if (archive.size() < end_bytes || archive.size() > zip_limit ||
      fields.at<std::uint32_t>(archive.size() - end_bytes) != end_mark)
    throw std::runtime_error("does not end as a zip archive does");
  const std::uint64_t end = archive.size() - end_bytes;
  std::map<std::string, std::string_view> members;
  std::uint64_t entry = fields.at<std::uint32_t>(end + 16);
  for (int left = fields.at<std::uint16_t>(end + 10); left > 0; --left) {
    if (fields.at<std::uint32_t>(entry) != central_mark)
      throw std::runtime_error("has a damaged list of members");
    const std::uint16_t length = fields.at<std::uint16_t>(entry + 28);
    const std::string name(fields.part(entry + central_bytes, length));
    if (!members.emplace(name, contents_of(fields, entry, name)).second)
      throw std::runtime_error(fmt::format("has the member '{}' twice", name));
    entry +=
        central_bytes + length + fields.at<std::uint16_t>(entry + 30) + fields.at<std::uint16_t>(entry + 32);
  }
  return members;
}

std::string zip_archive(const std::map<std::string, std::string_view>& members) {
  // Time and date are those of the format's first day: the bytes depend on the members alone.
  constexpr std::uint16_t version = 20, none = 0, first_day = 0x21;
  constexpr std::uint32_t nowhere = 0;
  std::string out, list;
  for (const auto& [name, contents] : members) {
    const std::uint64_t place = out.size();
    if (place + contents.size() > zip_limit) throw std::runtime_error("would have more than 2 GiB");
    const auto size = static_cast<std::uint32_t>(contents.size());
    const auto length = static_cast<std::uint16_t>(name.size());
    const std::uint32_t sum = crc32_of(contents);
    put_fields(out, local_mark, version, none, none, none, first_day, sum, size, size, length, none);
    out.append(name).append(contents);
    put_fields(list, central_mark, version, version, none, none, none, first_day, sum, size, size, length,
               none, none, none, none, nowhere, static_cast<std::uint32_t>(place));
    list += name;
  }
  const auto count = static_cast<std::uint16_t>(members.size());
  const auto place = static_cast<std::uint32_t>(out.size()), size = static_cast<std::uint32_t>(list.size());
  out += list;
  put_fields(out, end_mark, none, none, count, count, size, place, none);
  return out;
}

}  // namespace mulligan::record_script
