// Reads what tar_archive() wrote.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan::record {

// Returns name and contents of each file of a tar archive (ustar), in its order. Throws std::runtime_error for links and
// folders, a wrong checksum, a size beyond the end, and a repeated name. The message continues a sentence that begins
// with the archive's name.
std::vector<std::pair<std::string, std::string>> tar_contents(std::string_view archive);

}  // namespace mulligan::record
