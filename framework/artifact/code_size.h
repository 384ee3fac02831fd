// How many bytes the code of a result counts, in two ways: as source and as binaries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

// Compressing the code at the strongest setting takes many seconds, and it is the same code for every run of a sweep: what came out is
// kept from one command to the next.

// Where users' caches live: $XDG_CACHE_HOME/mulligan/packed_code, else ~/.cache/mulligan/packed_code;
// empty without either.
std::filesystem::path packed_code_folder();

// What `folder` keeps under `key`, if `is_right` says so, else what `make` returns, which is then kept. The newest 64 are
// kept. With an empty `folder`, or one that cannot be written, nothing is kept.
std::string kept_bytes(const std::string& key, const std::filesystem::path& folder,
                       const std::function<bool(const std::string&)>& is_right,
                       const std::function<std::string()>& make);

// `contents` by Brotli. A kept result counts only if it unpacks to the contents, so its size is true. Throws as compress()
// does.
std::string compress_once(std::string_view contents, const std::filesystem::path& folder);

// Files as one archive in the format of tar (ustar), by path, without times or owners: equal files give
// equal bytes. Names are relative to `root`. Throws data_error for an unreadable file and for a name that
// ustar cannot hold.
std::string tar_archive(const std::filesystem::path& root, const std::vector<std::filesystem::path>& files);

// The same of contents by name.
std::string tar_archive(std::vector<std::pair<std::string, std::string>> contents);

// Source of training and evaluation: all files below framework, include, kernels, plugins, optimizers, ttt, launch, tools, lab and
// configs of `root`, as tar_archive. Throws data_error when `root` holds no framework folder.
std::string source_archive(const std::filesystem::path& root);

// Whether a file's name is that of C++ or CUDA code: .h .hpp .inc .c .cpp .cu .cuh.
bool is_code(const std::filesystem::path& file);

// sha256 of lines "SHA256  PATH" of every file of code below framework, include, kernels, plugins, optimizers, ttt, tools, lab and launch of
// `root`, by path: equal for the tree that a program was built from (launch/write_source_digest.cmake).
std::string source_digest(const std::filesystem::path& root);

// The same of files by name, such as an archive of the tree holds.
std::string source_digest(const std::vector<std::pair<std::string, std::string>>& contents);

// The program and the plugin libraries, stripped of symbols (by the system's strip where a file has any), as
// tar_archive, compressed with Brotli. Throws run_error when strip is needed and missing, or fails.
std::uint64_t compressed_binary_bytes(const std::vector<std::filesystem::path>& binaries);

}  // namespace mulligan
