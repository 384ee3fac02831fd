#include "framework/plugin/crash_report.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

#include "framework/plugin/plugin_call.h"

namespace mulligan {
namespace {

struct Crash {
  int signal;
  const char* words;
};
constexpr std::array<Crash, 5> crashes{{{SIGSEGV, "SIGSEGV, an address that is not its own"},
                                        {SIGBUS, "SIGBUS, an address that no memory backs"},
                                        {SIGFPE, "SIGFPE, a division that has no result"},
                                        {SIGILL, "SIGILL, an instruction that this CPU does not know"},
                                        {SIGABRT, "SIGABRT, it aborted"}}};
std::array<struct sigaction, crashes.size()> before;

// "'/path/mulligan_x.so', ...": written before the process ends, read after.
char loaded_libraries[2048];
std::atomic<bool> process_ends{false};

// One sentence, put together in a fixed buffer: only functions that POSIX allows in a signal handler.
class Sentence {
 public:
  void add(const char* text) {
    while (*text && length_ + 1 < sizeof text_) text_[length_++] = *text++;
  }
  void add(std::size_t number) {
    char digits[24];
    std::size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    add(digits + at);
  }
  void write_out() {
    text_[length_++] = '\n';
    for (std::size_t done = 0; done < length_;) {
      const ssize_t written = ::write(STDERR_FILENO, text_ + done, length_ - done);
      if (written <= 0) return;
      done += static_cast<std::size_t>(written);
    }
  }

 private:
  char text_[4096];
  std::size_t length_ = 0;
};

void add_place(Sentence& sentence) {
  const RunningCall& call = running_call();
  const char* kernel = plugin_running()->kernel;
  if (!call.plugin && process_ends.load() && loaded_libraries[0] != 0) {
    sentence.add("the command had done its work; what plugins run at the end of the process was running (");
    sentence.add(loaded_libraries);
    sentence.add("); repair or replace the damaged one");
    return;
  }
  if (!call.plugin) {
    sentence.add("no plugin was running, so this is an error of mulligan's own: please report it");
    return;
  }
  if (call.program && kernel) {
    const char* owner = kernel_owner(kernel);
    sentence.add("kernel '");
    sentence.add(kernel);
    sentence.add("' of ");
    sentence.add(owner ? owner : call.plugin);
    sentence.add(" was running (program '");
    sentence.add(call.program);
    sentence.add("', call ");
    sentence.add(call.first_call + plugin_running()->call + 1);
    sentence.add("); fix or replace that plugin");
    return;
  }
  sentence.add(call.plugin);
  sentence.add(" was running its function '");
  sentence.add(call.function ? call.function : "?");
  sentence.add("'; fix or replace that plugin");
}

void tell(int signal) {
  Sentence sentence;
  sentence.add("\nmulligan: crashed by ");
  for (std::size_t i = 0; i < crashes.size(); ++i) {
    if (crashes[i].signal != signal) continue;
    sentence.add(crashes[i].words);
    sigaction(signal, &before[i], nullptr);
  }
  sentence.add(": ");
  add_place(sentence);
  sentence.add(".");
  sentence.write_out();
  raise(signal);  // blocked until this handler returns; then it ends the process as without this handler
}

}  // namespace

void report_crashes() {
  struct sigaction action {};
  action.sa_handler = tell;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < crashes.size(); ++i) sigaction(crashes[i].signal, &action, &before[i]);
}

void note_loaded_library(const std::string& path) {
  const std::string quoted = "'" + path + "'";
  if (std::strstr(loaded_libraries, quoted.c_str()) != nullptr) return;
  const std::size_t used = std::strlen(loaded_libraries);
  const std::string text = (used > 0 ? ", " : "") + quoted;
  if (used + text.size() < sizeof loaded_libraries)
    std::memcpy(loaded_libraries + used, text.c_str(), text.size() + 1);
}

void note_process_end() {
  process_ends.store(true);
}

}  // namespace mulligan
