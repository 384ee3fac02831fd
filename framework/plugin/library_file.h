// A library as it was when it was looked at, to be held against what the dynamic linker loads.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "framework/core/elf_file.h"

namespace mulligan {

// Looking and loading both go by the name, which may stand for another file in between; and a library that is being
// loaded may rename others over it. The digests here are of one file, and so is what is compared with memory.
class LibraryFile {
 public:
  // Throws config_error for what is not a library of this machine.
  explicit LibraryFile(const std::filesystem::path& path);
  const std::string& sha256() const { return sha256_; }                // of the file
  const std::string& loaded_sha256() const { return loaded_sha256_; }  // ElfFile::loaded_sha256()
  // Whether the handle of dlopen is of this very code, in memory as well; not so where the name stood for another
  // file by then, or a debugger has set breakpoints. Throws config_error where the file was written to since.
  bool is_loaded(void* library) const;

 private:
  std::filesystem::path path_;
  std::optional<ElfFile> file_;
  std::string looked_at_;  // the bytes of the digests, which a mapping may exchange
  std::string sha256_, loaded_sha256_;
};

}  // namespace mulligan
