#include "framework/core/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/input_file.h"

namespace mulligan {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const InputFile file(path);
  if (file.size() == 0) return;
  void* address = ::mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) {
    throw data_error("cannot map '{}' ({} bytes) into memory: {}", path.string(), file.size(),
                     std::strerror(errno));
  }
  size_ = file.size();
  data_ = {static_cast<const std::byte*>(address),
           [address, size = size_](const std::byte*) { ::munmap(address, size); }};
}

}  // namespace mulligan
