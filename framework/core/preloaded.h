// Code that was put into this process from outside: it can answer in the place of the C library, and so of anything.
#pragma once

#include <string>
#include <vector>

namespace mulligan {

// What speaks of such code, one phrase each: libraries that were loaded with the program though neither it nor what it
// needs names them, and variables by which the dynamic linker is told to load some (LD_PRELOAD, LD_AUDIT), as they
// stood when the process began. It finds what is there by the usual ways and not what hides: a library that takes
// the name of one that is needed, and removes the variable from memory, is not seen, nor is a changed program.
// As it was when the program was loaded, so plugins are not among them.
const std::vector<std::string>& preloaded_code();

// LD_LIBRARY_PATH, by which needed libraries are looked for elsewhere first; "": it is not set.
std::string library_path();

}  // namespace mulligan
