// Input: a first byte, then with 'f' what lies behind Brotli in an artifact of the record's script, as it is; with
// anything else the pickle, and behind a line ==== each the storages 0, 1, ... The target makes the archive of
// them: random changes would never get past its checksums.
#include <brotli/encode.h>

#include <algorithm>
#include <map>

#include "tests/fuzz/fuzz_target.h"
#include "tools/record_script/ptz.h"
#include "tools/record_script/zip_file.h"

namespace mulligan::fuzz {
namespace {

std::string archive_of(std::string_view input) {
  std::map<std::string, std::string_view> members = {{"archive/data.pkl", take_part(input)}};
  for (int storage = 0; !input.empty(); ++storage)
    members["archive/data/" + std::to_string(storage)] = take_part(input);
  return record_script::zip_archive(members);
}

// The fastest level: the framework's own compress() takes the slowest.
std::string behind_brotli(std::string_view bytes) {
  std::string out(2 * bytes.size() + 1024, '\0');
  std::size_t size = out.size();
  require(BrotliEncoderCompress(0, 16, BROTLI_MODE_GENERIC, bytes.size(),
                                reinterpret_cast<const std::uint8_t*>(bytes.data()), &size,
                                reinterpret_cast<std::uint8_t*>(out.data())) == BROTLI_TRUE,
          "Brotli did not compress");
  out.resize(size);
  return out;
}

}  // namespace

void ptz(std::string_view input) {
  if (input.empty()) return;
  const bool whole_file = input.front() == 'f';
  input.remove_prefix(1);
  const std::string file = behind_brotli(whole_file ? std::string(input) : archive_of(input));
  const auto read = unless_refused([&] { return record_script::parse_ptz(file, "fuzz"); });
  if (!read) return;
  for (const QuantizedTensor& tensor : *read) {
    const std::vector<float> weights = dequantize(tensor);
    require(static_cast<std::int64_t>(weights.size()) == tensor.elements(), "a tensor has other weights");
  }
  // Compressing takes long; what has no elements has no codes, and is written as plain.
  if (file.size() > 1000 || std::ranges::any_of(*read, [](const auto& t) { return t.elements() == 0; }))
    return;
  const auto written = unless_refused([&] { return record_script::serialize_ptz(*read); });
  if (written)
    require(record_script::parse_ptz(*written, "again") == *read, "an artifact does not read back");
}

}  // namespace mulligan::fuzz
