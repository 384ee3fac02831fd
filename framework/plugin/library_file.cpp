#include "framework/plugin/library_file.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

struct Wanted {
  Elf64_Addr base;
  std::vector<Elf64_Phdr> segments;
  bool found = false;
};

int take_segments(dl_phdr_info* info, std::size_t, void* wanted) {
  auto* w = static_cast<Wanted*>(wanted);
  if (info->dlpi_addr != w->base) return 0;
  w->segments.assign(info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum);
  w->found = true;
  return 1;
}

bool same(const Elf64_Phdr& a, const Elf64_Phdr& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::string_view text_of(const ElfFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The code and the constants in memory are those of the file; what relocations write to is not compared.
bool is_loaded_from(void* library, const ElfFile& file) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return false;
  Wanted loaded{map->l_addr, {}};
  dl_iterate_phdr(take_segments, &loaded);
  // First the tables: where they agree, all that is read below is there.
  if (!loaded.found || !std::ranges::equal(loaded.segments, file.segments(), same)) return false;
  for (const Elf64_Phdr& segment : loaded.segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    if (segment.p_offset > file.bytes().size() || segment.p_filesz > file.bytes().size() - segment.p_offset)
      return false;
    const auto* memory = reinterpret_cast<const void*>(map->l_addr + segment.p_vaddr);
    if (std::memcmp(memory, file.bytes().data() + segment.p_offset, segment.p_filesz) != 0) return false;
  }
  return true;
}

}  // namespace

LibraryFile::LibraryFile(const std::filesystem::path& path) : path_(path) {
  try {
    file_.emplace(path);
    looked_at_ = text_of(*file_);
    sha256_ = sha256_hex(looked_at_);
    loaded_sha256_ = file_->loaded_sha256();
  } catch (const std::runtime_error& reason) {
    throw config_error("the plugin file '{}' {}.", path.string(), reason.what());
  }
}

bool LibraryFile::is_loaded(void* library) const {
  if (text_of(*file_) != looked_at_) {
    throw config_error(
        "the plugin file '{}' was written to while it was being loaded, so its digest says nothing about its "
        "code; start again when it stays as it is.",
        path_.string());
  }
  return is_loaded_from(library, *file_);
}

}  // namespace mulligan
