#include "framework/core/child_process.h"

#include <unistd.h>

#include <csignal>

#include "framework/core/shell.h"

namespace mulligan {
namespace {

constexpr int ignored_signals[] = {SIGPIPE, SIGXFSZ};  // by take_over_signals

std::vector<char*> pointers_to(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void become_program(const std::vector<std::string>& arguments) {
  const std::vector<char*> pointers = pointers_to(arguments);
  sigset_t none, before;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  for (const int signal : ignored_signals) ::signal(signal, SIG_DFL);
  execvp(pointers[0], pointers.data());
  for (const int signal : ignored_signals) ::signal(signal, SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::string shell_quoted(std::string_view argument) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string_view::npos) {
    return std::string(argument);
  }
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace mulligan
