#include "framework/report/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>

#include "framework/core/shell.h"
#include "mulligan_build_commit.h"

namespace mulligan {
namespace {

// The rest of the first line of `file` that starts with `label`, after the colon and blanks.
std::string labelled_value(const char* file, std::string_view label) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(label)) continue;
    const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

const auto loaded_at = std::chrono::system_clock::now();  // when the program began

}  // namespace

std::int64_t peak_memory_bytes() {
  const std::string kibibytes = labelled_value("/proc/self/status", "VmHWM");
  return kibibytes.empty() ? 0 : std::stoll(kibibytes) * 1024;
}

std::string cpu_name() {
  const std::string name = labelled_value("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::string instruction_set() {
  std::string set = "baseline";
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx")) set = "avx";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) set = "avx2";
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) set = "avx512";
  if (__builtin_cpu_supports("avx512bf16")) set = "avx512_bf16";
  const std::string flags = " " + labelled_value("/proc/cpuinfo", "flags") + " ";
  for (const char* extension : {"avx512_fp16", "avx_vnni", "amx_bf16"}) {
    if (flags.find(fmt::format(" {} ", extension)) != std::string::npos)
      set += std::string(" + ") + extension;
  }
#endif
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (const char* limit = std::getenv(name)) set += fmt::format(", {}={}", name, limit);
  }
  return set;
}

std::string build_commit() {
  return MULLIGAN_BUILD_COMMIT;
}

std::string utc_time(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string process_start_time() {
  return utc_time(std::chrono::system_clock::to_time_t(loaded_at));
}

std::string process_command() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::string command;
  for (std::string word; std::getline(stream, word, '\0');) {
    command += (command.empty() ? "" : " ") + shell_quoted(word);
  }
  return command;
}

}  // namespace mulligan
