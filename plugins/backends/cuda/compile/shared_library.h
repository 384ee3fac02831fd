// A library that is looked for when it is needed, so that the plugin itself loads on machines without it.
#pragma once

#include <initializer_list>
#include <string>

namespace mulligan::cuda {

class SharedLibrary {
 public:
  // Opens the first of `names` that the system finds. Throws std::runtime_error: "WHAT was not
  // found (NAMES); REMEDY".
  SharedLibrary(const char* what, std::initializer_list<const char*> names, const char* remedy);

  // Throws std::runtime_error when the library has no such function: "WHAT has no function NAME; REMEDY".
  void* symbol(const char* name) const;
  // function = symbol(name), in the function's own type.
  template <typename Function>
  void bind(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  std::string what_, remedy_;
  void* handle_ = nullptr;  // never closed
};

}  // namespace mulligan::cuda
