#include "tools/sweep/own_command.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "framework/core/child_process.h"
#include "framework/core/error.h"
#include "framework/core/stop_request.h"

namespace mulligan {

std::vector<std::string> OwnCommand::arguments() const {
  std::vector<std::string> all = {std::filesystem::read_symlink("/proc/self/exe").string()};
  if (ranks > 1)
    all.insert(all.end(), {"launch", "--standalone", "--nproc-per-node", std::to_string(ranks),
                           "--max-restarts", "0", "--log-dir", directory.string() + "_ranks", "--"});
  all.insert(all.end(), words.begin(), words.end());
  for (const std::string& path : plugin_paths) all.insert(all.end(), {"--plugin-path", path});
  return all;
}

bool OwnCommand::run() const {
  throw_if_stopping();
  std::string errors = "\n";
  bool ended = false;
  const auto take = [&](std::string_view bytes) {
    if (show) show(bytes);
  };
  const auto take_error = [&](std::string_view bytes) {
    errors += bytes;
    take(bytes);
  };
  const auto stop = [&] {
    ended = ended || (end && end());
    return ended || stop_signal() != 0 ? SIGTERM : 0;
  };
  const int status = run_program(arguments(), {take, take_error, stop});
  if (status == 0) return true;
  if (stop_signal() != 0)
    throw Error(ExitCode::interrupted, fmt::format("{}stopped by {}; the same command goes on where it was.",
                                                   what, signal_name(stop_signal())));
  if (ended) return false;
  if (status < 0) throw run_error("{}the program could not be started.", what);
  if (WIFSIGNALED(status))
    throw run_error("{}ended by {}; see '{}'.", what, signal_name(WTERMSIG(status)), log);
  constexpr std::string_view mark = "\nmulligan: ";
  const std::size_t at = errors.rfind(mark), begin = at + mark.size();
  const int code = WEXITSTATUS(status);
  throw Error(static_cast<ExitCode>(code),
              what + (at == std::string::npos ? fmt::format("ended with exit code {}; see '{}'.", code, log)
                                              : errors.substr(begin, errors.find('\n', begin) - begin)));
}

void show_bytes(const ConsoleOptions& console, std::string_view bytes) {
  if (console.console == nullptr) return;
  std::fwrite(bytes.data(), 1, bytes.size(), console.console);
  std::fflush(console.console);
}

}  // namespace mulligan
