#include "framework/core/elf_file.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "framework/core/error.h"

namespace mulligan {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "name the ELF machine of this CPU here"
#endif

}  // namespace

ElfFile::ElfFile(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) throw std::runtime_error("does not exist");
  if (!std::filesystem::is_regular_file(path, status)) throw std::runtime_error("is not a file");
  try {
    mapped_ = MappedFile(path);
  } catch (const Error&) {
    throw std::runtime_error("cannot be read; check its permissions");
  }
  const Bytes file = mapped_.bytes();
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    throw std::runtime_error("is not a shared library");
  }
  Elf64_Ehdr header;
  std::memcpy(&header, part(0, sizeof header).data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachine) {
    throw std::runtime_error("is a library for another CPU architecture");
  }
  type_ = header.e_type;
  sections_.resize(header.e_shnum);
  const Bytes table = part(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  if (!sections_.empty()) {
    if (header.e_shentsize != sizeof(Elf64_Shdr)) throw std::runtime_error("is cut short or corrupt");
    std::memcpy(sections_.data(), table.data(), table.size());  // copied, since nothing promises alignment
  }
}

ElfFile::Bytes ElfFile::part(std::uint64_t offset, std::uint64_t size) const {
  const Bytes file = mapped_.bytes();
  if (offset > file.size() || size > file.size() - offset)
    throw std::runtime_error("is cut short or corrupt");
  return file.subspan(offset, size);
}

bool ElfFile::has_symbols() const {
  return std::ranges::any_of(sections_,
                             [](const Elf64_Shdr& section) { return section.sh_type == SHT_SYMTAB; });
}

}  // namespace mulligan
