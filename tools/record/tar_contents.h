// Reads what tar_archive() wrote.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan::record {

// Name and contents of each file of an archive in the format of tar (ustar), in its order. Files alone: whatever
// else an archive may hold (links, folders), a header with a wrong sum, a size beyond the end and a name that
// occurs twice are a std::runtime_error with a reason that reads on from the archive's name.
std::vector<std::pair<std::string, std::string>> tar_contents(std::string_view archive);

}  // namespace mulligan::record
