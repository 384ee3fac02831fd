// The code of a result: its archives, its digest, and what is kept of compressing it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

// Compressing the code at the strongest setting takes many seconds, and it is the same code for every run of a sweep: what came out is
// kept from one command to the next.

// Returns what cache_folder("packed_code") keeps under `key`, if it is undamaged. Otherwise calls `make` and keeps the result after
// its sha256. The newest 64 are kept. Without a folder that can be written, nothing is kept.
std::string kept_bytes(const std::string& key, const std::function<std::string()>& make);

// `contents` by Brotli. Throws as compress() does.
std::string compress_once(std::string_view contents);

// Files as one archive in the format of tar (ustar), by path, without times or owners: equal files give
// equal bytes. Throws data_error for a name of more than 100 bytes.
std::string tar_archive(std::vector<std::pair<std::string, std::string>> contents);

// Throws data_error when `root` holds no framework folder.
void require_source_tree(const std::filesystem::path& root);

// Source of training and evaluation: all files below framework, include, kernels, plugins, optimizers, ttt, launch, tools, lab and
// configs of `root`, as tar_archive. Throws data_error for no source tree and for an unreadable file.
std::string source_archive(const std::filesystem::path& root);

// sha256 of lines "SHA256  PATH" of every file of code (.h .hpp .inc .c .cpp .cu .cuh) of source_archive(), by path: equal for
// the tree that a program was built from (launch/write_source_digest.cmake).
std::string source_digest(const std::filesystem::path& root);

// The same of files by name, such as an archive of the tree holds.
std::string source_digest(const std::vector<std::pair<std::string, std::string>>& contents);

}  // namespace mulligan
