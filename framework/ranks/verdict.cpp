#include "framework/ranks/verdict.h"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "framework/core/file.h"

namespace mulligan {

Error Verdict::error_of(int rank) const {
  const bool failed_itself = rank == culprit && code == ExitCode::peer_failed;
  return Error(failed_itself ? ExitCode::run_failed : code, sentence);
}

void write_torchelastic_error(const std::filesystem::path& path, const std::string& sentence) {
  // The one clock of the control channel that may jump: the time is for people.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const nlohmann::json text = {
      {"message",
       {{"message", sentence},
        {"extraInfo", {{"py_callstack", sentence}, {"timestamp", std::to_string(seconds)}}}}}};
  write_file_atomically(path, text.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

void end_process_after(double seconds, const Error& error) {
  const std::string sentence =
      fmt::format("mulligan: the process did not end by itself {:g} s after: {}\n", seconds, error.what());
  std::thread([seconds, sentence, code = static_cast<int>(error.code())] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
    ::_exit(code);
  }).detach();
}

}  // namespace mulligan
