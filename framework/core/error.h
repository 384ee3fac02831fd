// The one exception type of the framework and the exit codes it maps to.
//
// Every message is one sentence that says what is wrong, where (file:line or key), and how to fix it.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace mulligan {

// Process exit codes, part of the command line's contract.
enum class ExitCode : int {
  ok = 0,
  run_failed = 1,         // the run itself failed (device, disk, non-finite loss, broken budget)
  bad_configuration = 2,  // configuration, command line or plugin
  bad_data = 3,           // shards, tokenizer, manifest, documents
  interrupted = 4,        // stopped by a signal after writing a checkpoint; --resume continues
  peer_failed = 5,        // another rank of the run failed; the sentence names it
};

// An error meant for the user. `what()` is the sentence that is printed.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, std::string message) : std::runtime_error(std::move(message)), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

template <typename... Args>
Error run_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ExitCode::run_failed, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
Error config_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ExitCode::bad_configuration, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
Error data_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ExitCode::bad_data, fmt::format(format, std::forward<Args>(args)...));
}

// Throw them where `broken`. The arguments are evaluated in either case.
template <typename... Args>
void config_error_if(bool broken, fmt::format_string<Args...> format, Args&&... args) {
  if (broken) throw config_error(format, std::forward<Args>(args)...);
}
template <typename... Args>
void data_error_if(bool broken, fmt::format_string<Args...> format, Args&&... args) {
  if (broken) throw data_error(format, std::forward<Args>(args)...);
}

}  // namespace mulligan
