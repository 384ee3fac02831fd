// Not boost::dll::library_info: it reads .symtab, which `strip` removes, and trusts every offset in the file.
#include <elf.h>

#include <cstring>
#include <span>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/mapped_file.h"
#include "framework/plugin/plugin_file.h"

namespace mulligan {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "name the ELF machine of this processor here"
#endif

using Bytes = std::span<const std::byte>;

std::runtime_error corrupt() {
  return std::runtime_error("is cut short or corrupt");
}

// The part [offset, offset + size) of the file.
Bytes part(Bytes file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) throw corrupt();
  return file.subspan(offset, size);
}

// Copied out, since nothing promises alignment.
template <typename T>
T read(Bytes file, std::uint64_t offset) {
  T value;
  std::memcpy(&value, part(file, offset, sizeof value).data(), sizeof value);
  return value;
}

Elf64_Ehdr read_header(Bytes file) {
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    throw std::runtime_error("is not a shared library");
  }
  const auto header = read<Elf64_Ehdr>(file, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachine) {
    throw std::runtime_error("is a library for another kind of processor");
  }
  if (header.e_type != ET_DYN) throw std::runtime_error("is not a shared library");
  if (header.e_shentsize != sizeof(Elf64_Shdr)) throw corrupt();
  return header;
}

bool is_exported(const Elf64_Sym& symbol) {
  const int binding = ELF64_ST_BIND(symbol.st_info), visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && binding != STB_LOCAL &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

}  // namespace

std::vector<std::string> exported_symbols(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) throw std::runtime_error("does not exist");
  if (!std::filesystem::is_regular_file(path, status)) throw std::runtime_error("is not a file");
  MappedFile mapped;
  try {
    mapped = MappedFile(path);
  } catch (const Error&) {
    throw std::runtime_error("cannot be read; check its permissions");
  }
  const Bytes file = mapped.bytes();
  const Elf64_Ehdr header = read_header(file);
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_DYNSYM) continue;
    const auto strings =
        read<Elf64_Shdr>(file, header.e_shoff + std::uint64_t{section.sh_link} * sizeof(Elf64_Shdr));
    const Bytes symbols = part(file, section.sh_offset, section.sh_size);
    const Bytes text = part(file, strings.sh_offset, strings.sh_size);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(symbols, at);
      if (!is_exported(symbol)) continue;
      const Bytes rest =
          part(text, symbol.st_name, text.size() - std::min<std::size_t>(symbol.st_name, text.size()));
      const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
      if (!end) throw corrupt();
      names.emplace_back(reinterpret_cast<const char*>(rest.data()));
    }
  }
  return names;
}

}  // namespace mulligan
