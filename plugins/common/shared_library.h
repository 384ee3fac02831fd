// A library of a vendor that is looked for when it is needed, so that the plugin itself loads on machines
// without it. Compiled into each plugin that needs one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mulligan::plugins {

// The folder of the library that this code is compiled into; empty where it is not known.
std::filesystem::path own_folder();

class SharedLibrary {
 public:
  // Opens the first of `names` (paths, or names that the system looks for) that is found. Throws
  // std::runtime_error: "WHAT was not found (NAMES); REMEDY", with the reason for a file that is there.
  SharedLibrary(std::string what, const std::vector<std::string>& names, std::string remedy);

  // Throws std::runtime_error when the library has no such function: "WHAT has no function NAME; REMEDY".
  void* symbol(const char* name) const;
  // The file that was opened, for messages.
  std::string file() const;
  // symbol(name) as a pointer to a function of any type.
  struct Symbol {
    void* address;
    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  Symbol operator[](const char* name) const { return {symbol(name)}; }

 private:
  std::string what_, remedy_;
  void* handle_ = nullptr;  // never closed
};

}  // namespace mulligan::plugins
