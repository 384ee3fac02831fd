#include "plugins/common/shared_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <utility>

namespace mulligan::plugins {

SharedLibrary::SharedLibrary(std::string what, const std::vector<std::string>& names, std::string remedy)
    : what_(std::move(what)), remedy_(std::move(remedy)) {
  std::string tried;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    tried += (tried.empty() ? "" : ", ") + name;
  }
  throw std::runtime_error(what_ + " was not found (" + tried + "); " + remedy_);
}

void* SharedLibrary::symbol(const char* name) const {
  if (void* address = dlsym(handle_, name)) return address;
  throw std::runtime_error(what_ + " has no function " + name + "; " + remedy_);
}

}  // namespace mulligan::plugins
