#include "plugins/backends/cuda/compile/shared_library.h"

#include <dlfcn.h>

#include <stdexcept>

namespace mulligan::cuda {

SharedLibrary::SharedLibrary(const char* what, std::initializer_list<const char*> names, const char* remedy)
    : what_(what), remedy_(remedy) {
  std::string tried;
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    tried += std::string(tried.empty() ? "" : ", ") + name;
  }
  throw std::runtime_error(what_ + " was not found (" + tried + "); " + remedy_);
}

void* SharedLibrary::symbol(const char* name) const {
  if (void* address = dlsym(handle_, name)) return address;
  throw std::runtime_error(what_ + " has no function " + name + "; " + remedy_);
}

}  // namespace mulligan::cuda
