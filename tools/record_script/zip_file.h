// Zip archives whose members are stored as they are, the container of torch.save.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace mulligan::record_script {

// Contents of each member by its name; they point into `archive`. Compressed, encrypted and repeated members, a
// size beyond the end, a checksum (CRC 32) that does not fit, and 2 GiB or more are a std::runtime_error with a
// reason that reads on from the archive's name.
std::map<std::string, std::string_view> zip_members(std::string_view archive);

// The reverse. The same members give the same bytes. Throws std::runtime_error like that beyond 2 GiB.
std::string zip_archive(const std::map<std::string, std::string_view>& members);

}  // namespace mulligan::record_script
