#include "framework/core/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
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

int run_program(const std::vector<std::string>& arguments) {
  const std::vector<char*> pointers = pointers_to(arguments);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int signal : ignored_signals) sigaddset(&usual, signal);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, pointers[0], nullptr, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

}  // namespace mulligan

namespace mulligan {

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
