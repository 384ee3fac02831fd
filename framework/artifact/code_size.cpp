#include "framework/artifact/code_size.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <map>

#include "framework/artifact/compression.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kept_streams = 64;

// Makes room for one more: the oldest goes.
void remove_oldest(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files.emplace_back(entry.last_write_time(), entry.path());
  if (files.size() >= kept_streams) fs::remove(std::ranges::min(files).second);
}

}  // namespace

std::string kept_bytes(const std::string& key, const std::function<std::string()>& make) {
  const fs::path folder = cache_folder("packed_code"), file = folder / key;
  try {
    if (std::error_code unknown; !folder.empty() && fs::is_regular_file(file, unknown)) {
      const std::string kept = read_file(file, kLargestDescription);
      constexpr std::size_t digest = 64;
      if (kept.size() > digest && sha256_hex(kept.substr(digest)) == kept.substr(0, digest))
        return kept.substr(digest);
    }
  } catch (const std::runtime_error&) {  // as good as none
  }
  std::string made = make();
  if (folder.empty()) return made;
  try {
    fs::create_directories(folder);
    remove_oldest(folder);
    write_file_atomically(file, sha256_hex(made) + made);
  } catch (const std::runtime_error&) {  // nothing depends on it but the time of the next command
  }
  return made;
}

std::string compress_once(std::string_view contents) {
  return kept_bytes("brotli_" + sha256_hex(contents),
                    [&] { return compress(Compression::brotli, contents); });
}

namespace {

constexpr std::size_t tar_block = 512;

// One ustar header: name, mode 0644, size; owner and time are zero.
std::string tar_header(const std::string& name, std::size_t size) {
  data_error_if(name.size() > 100, "the path '{}' is too long for a tar archive; shorten it", name);
  std::string header(tar_block, '\0');
  const auto put = [&](std::size_t offset, const std::string& text) {
    header.replace(offset, text.size(), text);
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

constexpr std::string_view digested_folders[] = {"framework", "include", "kernels", "plugins", "optimizers",
                                                 "ttt",       "launch",  "tools",   "lab"};

// Whether a file's name is that of C++ or CUDA code.
bool is_code(const fs::path& file) {
  constexpr std::string_view kinds[] = {".h", ".hpp", ".inc", ".c", ".cpp", ".cu", ".cuh"};
  return std::ranges::find(kinds, file.extension().string()) != std::end(kinds);
}

// The files of the digest and of configs, by name.
std::vector<std::pair<std::string, std::string>> source_files(const fs::path& root) {
  std::vector<std::string_view> folders(std::begin(digested_folders), std::end(digested_folders));
  folders.emplace_back("configs");
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string_view folder : folders) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file())
        files.emplace_back(entry.path().lexically_relative(root).generic_string(), read_file(entry.path()));
    }
  }
  return files;
}

}  // namespace

std::string tar_archive(std::vector<std::pair<std::string, std::string>> files) {
  std::ranges::sort(files);
  std::string archive;
  for (const auto& [name, contents] : files) {
    archive += tar_header(name, contents.size());
    archive += contents;
    archive.append((tar_block - contents.size() % tar_block) % tar_block, '\0');
  }
  archive.append(2 * tar_block, '\0');
  return archive;
}

void require_source_tree(const fs::path& root) {
  if (fs::is_directory(root / "framework")) return;
  throw data_error("'{}' is not mulligan's source tree, so its code cannot be counted; name it with --source",
                   root.string());
}

std::string source_archive(const fs::path& root) {
  require_source_tree(root);
  return tar_archive(source_files(root));
}

std::string source_digest(const fs::path& root) {
  return source_digest(source_files(root));
}

std::string source_digest(const std::vector<std::pair<std::string, std::string>>& contents) {
  std::map<std::string, std::string> sums;
  for (const auto& [name, text] : contents) {
    const std::string folder = name.substr(0, name.find('/'));
    if (std::ranges::find(digested_folders, folder) != std::end(digested_folders) && is_code(name))
      sums[name] = sha256_hex(text);
  }
  std::string lines;
  for (const auto& [name, sum] : sums) lines += fmt::format("{}  {}\n", sum, name);
  return sha256_hex(lines);
}

}  // namespace mulligan
