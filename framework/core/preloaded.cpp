#include "framework/core/preloaded.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

namespace mulligan {
namespace {

struct Object {
  std::string name, soname;
  std::vector<std::string> needed;
};

Object describe(const link_map& map) {
  Object object{map.l_name, {}, {}};
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    // The linker has made an address of it, but for what it may not write to (the kernel's own object).
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  if (reinterpret_cast<std::uintptr_t>(strings) < map.l_addr) return object;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SONAME) object.soname = strings + entry->d_un.d_val;
    if (entry->d_tag == DT_NEEDED) object.needed.emplace_back(strings + entry->d_un.d_val);
  }
  return object;
}

// The program first.
std::vector<Object> loaded_objects() {
  std::vector<Object> objects;
  void* program = dlopen(nullptr, RTLD_NOW | RTLD_NOLOAD);
  const link_map* map = nullptr;
  if (program == nullptr || dlinfo(program, RTLD_DI_LINKMAP, &map) != 0) return objects;
  for (; map != nullptr; map = map->l_next) {
    const std::string_view name = map->l_name;
    if (!name.starts_with("linux-vdso") && !name.starts_with("linux-gate")) objects.push_back(describe(*map));
  }
  return objects;
}

std::vector<std::string> not_needed() {
  const std::vector<Object> objects = loaded_objects();
  if (objects.empty()) return {};
  std::set<std::string> wanted(objects.front().needed.begin(), objects.front().needed.end());
  std::vector<bool> reached(objects.size());
  reached.front() = true;
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const Object& one = objects[i];
      const std::string file = std::filesystem::path(one.name).filename().string();
      if (reached[i] ||
          (!wanted.contains(one.soname) && !wanted.contains(file) && !wanted.contains(one.name)))
        continue;
      found = reached[i] = true;
      wanted.insert(one.needed.begin(), one.needed.end());
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (!reached[i]) names.push_back(objects[i].name);
  return names;
}

// Of the environment as the process was given it, which a library that was loaded first may have changed since.
std::string first_environment(std::string_view variable) {
  std::ifstream file("/proc/self/environ", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const std::string begin = std::string(variable) + "=";
  for (std::size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) {
    if (std::string_view(all).substr(at).starts_with(begin)) return all.c_str() + at + begin.size();
    if (all.find('\0', at) == std::string::npos) break;
  }
  return {};
}

std::vector<std::string> find_preloaded() {
  std::vector<std::string> found;
  for (const std::string& name : not_needed())
    found.push_back(fmt::format("'{}' was loaded with the program, which does not need it", name));
  for (const char* variable : {"LD_PRELOAD", "LD_AUDIT"}) {
    if (const std::string value = first_environment(variable); !value.empty())
      found.push_back(fmt::format("{} is '{}'", variable, value));
  }
  return found;
}

const std::vector<std::string> at_start = find_preloaded();

}  // namespace

const std::vector<std::string>& preloaded_code() {
  return at_start;
}

std::string library_path() {
  return first_environment("LD_LIBRARY_PATH");
}

}  // namespace mulligan
