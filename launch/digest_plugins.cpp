// digest_plugins HEADER LIBRARY...: writes a header that defines MULLIGAN_BUILD_PLUGINS, the digests of what each
// library loads (ElfFile::loaded_sha256) with the plugin's name, as the initialiser of a map. Part of the build.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "framework/core/elf_file.h"

int main(int argc, char** argv) {
  try {
    std::ofstream header(argc > 1 ? argv[1] : "");
    header << "#define MULLIGAN_BUILD_PLUGINS {";
    for (int i = 2; i < argc; ++i) {
      const std::string stem = std::filesystem::path(argv[i]).stem().string(), prefix = "mulligan_";
      const std::string name = stem.starts_with(prefix) ? stem.substr(prefix.size()) : stem;
      header << "{\"" << mulligan::ElfFile(argv[i]).loaded_sha256() << "\",\"" << name << "\"},";
    }
    header << "}\n";
    if (header.flush()) return 0;
    std::fprintf(stderr, "digest_plugins: cannot write the header\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digest_plugins: a library %s\n", error.what());
  }
  return 1;
}
