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

}  // namespace

std::vector<std::string> exported_symbols(const std::filesystem::path& path) {
  const ElfFile file(path);
  if (!file.is_shared_object()) throw std::runtime_error("is not a shared library");
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
