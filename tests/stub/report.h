// What the stubs of a process tell a test about it, and the misuse that a test plants.
#pragma once

#include <unistd.h>

#include <fcntl.h>
#include <cstdlib>
#include <sstream>
#include <string>

namespace stubs {

// At its end a process adds a line for each library to the file MULLIGAN_STUB_REPORT: the library, how many of its
// calls were judged, and what was wrong ("-": nothing).
inline void report(const char* library, long judged, const std::string& violation) {
  const char* path = std::getenv("MULLIGAN_STUB_REPORT");
  if (!path || !*path) return;
  const std::string line = std::string(library) + "\t" + std::to_string(judged) + "\t" +
                           (violation.empty() ? "-" : violation) + "\n";
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;  // a process that may write nothing
  if (write(file, line.data(), line.size()) < 0) std::abort();
  close(file);
}

// Whether the library's call of this number is the one to be spoilt: MULLIGAN_STUB_PLANT="LIBRARY CALL RANK".
inline bool is_planted(const char* library, long call) {
  static const std::string wanted = [] {
    const char* text = std::getenv("MULLIGAN_STUB_PLANT");
    return std::string(text ? text : "");
  }();
  if (wanted.empty()) return false;
  std::istringstream words(wanted);
  std::string name;
  long number = 0, rank = -1;
  if (!(words >> name >> number >> rank)) std::abort();  // a test that would test nothing
  const char* own = std::getenv("RANK");
  return name == library && number == call && rank == (own ? std::atol(own) : 0);
}

}  // namespace stubs
