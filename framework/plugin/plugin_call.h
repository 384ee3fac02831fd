// What runs in this process at the moment: the plugin's function, and the kernel with its program. Error and crash
// messages use it (crash_report.h). A note costs a few stores, so it stays on during steps.
#pragma once

#include <mulligan/abi.h>

#include <string>

namespace mulligan {

// Strings must outlive the note. There is one note per process: one thread at a time calls plugins, and their kernels spread
// over other threads.
struct RunningCall {
  const char* plugin = nullptr;    // "loss 'x' (/path/mulligan_x.so)"
  const char* function = nullptr;  // the member of its table: "rate"
  const char* program = nullptr;   // while a program's kernels run: "micro step"
  std::size_t first_call = 0;      // number, in the program, of the first call in the list of run()
};

namespace plugin_call_detail {
inline RunningCall running;
}
inline const RunningCall& running_call() {
  return plugin_call_detail::running;
}

// Notes a call of a plugin for as long as it lives.
class PluginCallNote {
 public:
  PluginCallNote(const char* plugin, const char* function) : before_(plugin_call_detail::running) {
    set(&plugin_call_detail::running.plugin, plugin);
    set(&plugin_call_detail::running.function, function);
  }
  ~PluginCallNote() {
    set(&plugin_call_detail::running.plugin, before_.plugin);
    set(&plugin_call_detail::running.function, before_.function);
  }
  PluginCallNote(const PluginCallNote&) = delete;
  PluginCallNote& operator=(const PluginCallNote&) = delete;

 private:
  // A store that the compiler neither drops nor moves past the call, since a signal handler reads it.
  static void set(const char** slot, const char* value) { *const_cast<const char* volatile*>(slot) = value; }
  RunningCall before_;
};

// Notes the program whose kernels run, from its call number `first_call` on, for as long as it lives.
class ProgramNote {
 public:
  ProgramNote(const char* program, std::size_t first_call) {
    plugin_call_detail::running.first_call = first_call;
    *const_cast<const char* volatile*>(&plugin_call_detail::running.program) = program;
  }
  ~ProgramNote() { *const_cast<const char* volatile*>(&plugin_call_detail::running.program) = nullptr; }
  ProgramNote(const ProgramNote&) = delete;
  ProgramNote& operator=(const ProgramNote&) = delete;
};

// What a backend of this process is running (abi.h). Backends write it.
mlg_running* plugin_running();

// Notes that `owner` ("loss 'x' (/path)") brought the kernel. Kept until the process ends.
void note_kernel_owner(const char* kernel, const std::string& owner);
// The owner, or null for a kernel of the backend's own. Usable in a signal handler.
const char* kernel_owner(const char* kernel);

}  // namespace mulligan
