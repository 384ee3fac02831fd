// ElfFile: sections of a program or shared library, read but not loaded. Every offset in the file is checked.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "framework/core/mapped_file.h"

namespace mulligan {

class ElfFile {
 public:
  using Bytes = std::span<const std::byte>;

  // Throws std::runtime_error with a reason that reads on from the file's name: "does not exist", "is
  // not a shared library" (no ELF file at all), "is a library for another CPU architecture", "is cut
  // short or corrupt".
  explicit ElfFile(const std::filesystem::path& path);

  bool is_shared_object() const { return type_ == ET_DYN; }  // also a position-independent program
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }

  Bytes bytes() const { return mapped_.bytes(); }  // all of the file

  // What the sections hold; throws std::runtime_error where it lies outside of the file.
  Bytes contents(const Elf64_Shdr& section) const { return part(section.sh_offset, section.sh_size); }

  // Whether there is a symbol table besides the dynamic one, which `strip` takes away.
  bool has_symbols() const;

 private:
  Bytes part(std::uint64_t offset, std::uint64_t size) const;

  MappedFile mapped_;
  Elf64_Half type_ = ET_NONE;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace mulligan
