#include "plugins/common/shared_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace mulligan::plugins {

std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  return std::filesystem::canonical(info.dli_fname, error).parent_path();
}

SharedLibrary::SharedLibrary(std::string what, const std::vector<std::string>& names, std::string remedy)
    : what_(std::move(what)), remedy_(std::move(remedy)) {
  std::string tried;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    tried += (tried.empty() ? "" : ", ") + name;
    if (const char* reason = dlerror(); reason && access(name.c_str(), F_OK) == 0)
      tried += std::string(": ") + reason;
  }
  throw std::runtime_error(what_ + " was not found (" + tried + "); " + remedy_);
}

void* SharedLibrary::symbol(const char* name) const {
  if (void* address = dlsym(handle_, name)) return address;
  throw std::runtime_error(what_ + " has no function " + name + "; " + remedy_);
}

std::string SharedLibrary::file() const {
  link_map* map = nullptr;
  return dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : what_;
}

}  // namespace mulligan::plugins
