#include "framework/core/exhaustion.h"

#include <fmt/format.h>
#include <unistd.h>

#include <new>
#include <system_error>

#include "framework/core/error.h"
#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

std::terminate_handler before = nullptr;

[[noreturn]] void end_exhausted() {
  try {
    if (const auto sentence = exhaustion_sentence(std::current_exception())) {
      const std::string line = fmt::format("mulligan: {}\n", *sentence);
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
      remove_temporaries_for_good();
      ::_exit(static_cast<int>(ExitCode::run_failed));
    }
  } catch (...) {
    // Not even memory for this: what follows says less.
  }
  if (before) before();
  std::abort();
}

}  // namespace

std::optional<std::string> exhaustion_sentence(const std::exception_ptr& failure) {
  if (!failure) return std::nullopt;
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    return "there is not enough memory, or a limit such as ulimit -v allows too little; give more, or make "
           "train.tokens_per_step, the model or the number of threads smaller.";
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return fmt::format(
          "the system refuses another thread ({}); ask for fewer (run.threads, or --threads "
          "of prepare), or allow more of them (ulimit -u) and more memory (ulimit -v).",
          error.code().message());
    return fmt::format("the system refuses a request: {}.", error.code().message());
  } catch (...) {
  }
  return std::nullopt;
}

void report_exhaustion() {
  before = std::set_terminate(end_exhausted);
}

}  // namespace mulligan
