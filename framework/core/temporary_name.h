// Names of files that are being written: NAME.tmp.PROCESS.NUMBER.RANK.HOST, beside NAME.
#pragma once

#include <filesystem>
#include <string>

namespace mulligan {

// A name that no other process uses, on this machine or on one that shares the disk, for what will be `path`.
std::filesystem::path temporary_name(const std::filesystem::path& path);

// "NAME" of a temporary name; "" for other names.
std::string name_of_temporary(const std::string& file_name);

// Whether the process that was writing a temporary has ended. Of another machine's nothing can be known: its
// process counts as ended an hour after it wrote last. False for other names.
bool is_left_behind(const std::filesystem::path& path);

}  // namespace mulligan
