// Which plugin libraries were built together with the program: those whose code its source tree holds.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace mulligan {

// ElfFile::loaded_sha256() of every library of the build, with the plugin's name. Called once, by a program that
// knows them.
void set_build_plugins(std::map<std::string, std::string> name_by_loaded_sha256);

// What this process has loaded from `library` (a canonical path), by its ElfFile::loaded_sha256(); "": nobody knows. Whatever lies there
// afterwards, the path is judged by it: a library can put another one in its place while it is being loaded.
void note_loaded_plugin(const std::filesystem::path& library, const std::string& loaded_sha256);

// Whether `library` is none of the build's; a name says nothing. Also one that cannot be read. Where the program
// does not know its build (tests, programs that link this code) no library is foreign.
bool is_foreign(const std::filesystem::path& library);

// The name of the build's plugin that `library` is, wherever it lies and whatever it is called there; empty where it
// is foreign, or the build is not known.
std::string build_plugin_name(const std::filesystem::path& library);

// That it is one, and what may be done; a sentence without full stop.
std::string foreign_text(const std::filesystem::path& library);

}  // namespace mulligan
