// Not boost::dll::library_info: it reads .symtab, which `strip` removes, and trusts every offset in the file.
#include <cstring>
#include <stdexcept>

#include "framework/core/elf_file.h"
#include "framework/plugin/plugin_file.h"

namespace mulligan {
namespace {

bool is_exported(const Elf64_Sym& symbol) {
  const int binding = ELF64_ST_BIND(symbol.st_info), visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && binding != STB_LOCAL &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

// The string that starts at `offset` of a string table.
std::string string_at(ElfFile::Bytes text, std::size_t offset) {
  const void* end =
      offset < text.size() ? std::memchr(text.data() + offset, 0, text.size() - offset) : nullptr;
  if (!end) throw std::runtime_error("is cut short or corrupt");
  return reinterpret_cast<const char*>(text.data() + offset);
}

#if defined(__x86_64__)
constexpr std::uint64_t relative = R_X86_64_RELATIVE;
#else
constexpr std::uint64_t relative = R_AARCH64_RELATIVE;
#endif

// Checks what the dynamic linker assumes. If one of these does not hold, an assertion of the linker ends the process:
// sizes of entries, the kind of the table that serves the PLT, and the declared number of relative relocations.
void require_what_the_linker_asserts(const ElfFile& file) {
  for (const Elf64_Shdr& dynamic : file.sections()) {
    if (dynamic.sh_type != SHT_DYNAMIC) continue;
    const ElfFile::Bytes entries = file.contents(dynamic);
    std::uint64_t address = 0, size = 0, count = 0;
    for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, entries.data() + at, sizeof entry);
      if (entry.d_tag == DT_NULL) break;
      const std::uint64_t value = entry.d_un.d_val;
      const bool sound = (entry.d_tag != DT_RELAENT || value == sizeof(Elf64_Rela)) &&
                         (entry.d_tag != DT_SYMENT || value == sizeof(Elf64_Sym)) &&
                         (entry.d_tag != DT_PLTREL || value == DT_RELA);
      if (!sound) throw std::runtime_error("is cut short or corrupt");
      if (entry.d_tag == DT_RELA) address = value;
      if (entry.d_tag == DT_RELASZ) size = value;
      if (entry.d_tag == DT_RELACOUNT) count = value;
    }
    if (count > size / sizeof(Elf64_Rela)) throw std::runtime_error("is cut short or corrupt");
    for (const Elf64_Shdr& section : file.sections()) {
      if (section.sh_type != SHT_RELA || section.sh_addr != address) continue;
      const ElfFile::Bytes relocations = file.contents(section);
      for (std::uint64_t i = 0; i < count; ++i) {
        Elf64_Rela relocation;
        if ((i + 1) * sizeof relocation > relocations.size())
          throw std::runtime_error("is cut short or corrupt");
        std::memcpy(&relocation, relocations.data() + i * sizeof relocation, sizeof relocation);
        if (ELF64_R_TYPE(relocation.r_info) != relative) throw std::runtime_error("is cut short or corrupt");
      }
    }
  }
}

}  // namespace

std::vector<std::string> exported_symbols(const std::filesystem::path& path) {
  const ElfFile file(path);
  if (!file.is_shared_object()) throw std::runtime_error("is not a shared library");
  require_what_the_linker_asserts(file);
  std::vector<std::string> names;
  for (const Elf64_Shdr& section : file.sections()) {
    if (section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= file.sections().size()) throw std::runtime_error("is cut short or corrupt");
    const ElfFile::Bytes symbols = file.contents(section);
    const ElfFile::Bytes text = file.contents(file.sections()[section.sh_link]);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, symbols.data() + at, sizeof symbol);
      if (is_exported(symbol)) names.push_back(string_at(text, symbol.st_name));
    }
  }
  return names;
}

}  // namespace mulligan
