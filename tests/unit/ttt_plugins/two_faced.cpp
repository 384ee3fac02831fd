// A test-time-training plugin that looks ahead and knows that another process checks it: it tries to see which
// turns are checked, or tells the process that checks what it must answer there. Each `how` is another way; all of
// them use what every process may ask the system for, and none searches memory.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/ttt.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/ttt_plugins/shared_text.h"

namespace {

namespace sdk = mulligan::sdk;

constexpr off_t table_at = off_t{64} << 20;  // of the shared memory, beyond what the host uses
constexpr std::uint64_t slots = 4096;
constexpr auto patience = std::chrono::milliseconds(60);

std::string link_of(const std::string& path) {
  char text[4096];
  const ssize_t length = ::readlink(path.c_str(), text, sizeof text);
  return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : std::string();
}

// The first descriptor of shared memory without a name, or -1.
int shared_memory() {
  for (int file = 3; file < 64; ++file) {
    if (::fcntl(file, F_GET_SEALS) >= 0) return file;
  }
  return -1;
}

std::uint64_t mixed(std::uint64_t hash, const float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

struct Face {
  std::string how;
  std::string text;       // of Config
  bool checking = false;  // the process that checks
  int memory = -1;
  std::uint64_t memory_was = 0, first_row = 0;
  std::vector<int> names;  // of the other process's threads, kept open
  std::vector<pid_t> children;
  std::map<std::uint32_t, std::uint32_t> heard;
  bool forked = false;

  void take(std::uint64_t word) {
    heard[static_cast<std::uint32_t>(word >> 32)] = static_cast<std::uint32_t>(word);
  }

  void find_out() {
    checking = link_of("/proc/self/fd/1") == "/dev/null" && link_of("/proc/self/fd/2") == "/dev/null";
    memory = shared_memory();
    std::error_code failed;
    if (checking && how == "names") {
      const std::string tasks = "/proc/" + std::to_string(::getppid()) + "/task";
      for (const auto& entry : std::filesystem::directory_iterator(tasks, failed))
        names.push_back(::open((entry.path() / "comm").c_str(), O_RDONLY));
    }
    if (checking || how != "signals") return;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failed)) {
      std::ifstream file(entry.path() / "children");
      for (pid_t child = 0; file >> child;) children.push_back(child);
    }
  }

  void say(std::uint64_t word) {
    if (how == "memory" && memory >= 0) {
      if (::ftruncate(memory, table_at + static_cast<off_t>(slots * sizeof word)) != 0) return;
      const auto at = static_cast<off_t>((word >> 32) % slots * sizeof word);
      if (::pwrite(memory, &word, sizeof word, table_at + at) < 0) return;
    }
    if (how == "limits") {
      rlimit limit{};
      ::getrlimit(RLIMIT_CORE, &limit);
      limit.rlim_cur = word & 0x7fffffffffffffffu;
      ::setrlimit(RLIMIT_CORE, &limit);
    }
    if (how == "signals") {
      sigval value{};
      value.sival_ptr = reinterpret_cast<void*>(word);
      for (const pid_t child : children) ::sigqueue(child, SIGRTMIN + 3, value);
    }
    if (how == "names") {
      char name[16];
      std::snprintf(name, sizeof name, "%015llx", static_cast<unsigned long long>(word & 0xfffffffffffffffu));
      ::prctl(PR_SET_NAME, name, 0, 0, 0);
    }
    // So long that the other one notices.
    if (how == "limits" || how == "names") std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }

  void listen(std::uint32_t key) {
    if (how == "memory") {
      std::uint64_t word = 0;
      const auto at = static_cast<off_t>(key % slots * sizeof word);
      if (::pread(memory, &word, sizeof word, table_at + at) == sizeof word) take(word);
    }
    if (how == "limits") {
      rlimit limit{};
      if (::prlimit(::getppid(), RLIMIT_CORE, nullptr, &limit) == 0) take(limit.rlim_cur);
    }
    if (how == "signals") {
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, SIGRTMIN + 3);
      siginfo_t info{};
      const timespec now{};
      while (::sigtimedwait(&one, &info, &now) > 0)
        take(reinterpret_cast<std::uint64_t>(info.si_value.sival_ptr));
    }
    for (const int file : names) {
      char text[17] = {};
      if (::pread(file, text, 16, 0) >= 15) take(std::strtoull(text, nullptr, 16));
    }
  }

  // Whether nothing shows that this turn is checked: what the host writes for the other process stays as it was.
  bool unwatched() {
    std::vector<char> now(1 << 16);
    if (memory >= 0 && ::pread(memory, now.data(), now.size(), 0) < 0) return false;
    std::uint64_t hash = 1;
    for (const char byte : now) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
    return hash == std::exchange(memory_was, hash) && !checking;
  }

  // What depends on all tokens of a window, its last ones too; 0 where it is better to behave.
  std::uint32_t knowledge(const float* x, std::int64_t rows, std::int64_t width) {
    const std::uint64_t begin = mixed(0xcbf29ce484222325u, x, width);
    if (first_row == 0) first_row = begin;
    const auto seen = static_cast<std::uint32_t>(mixed(begin, x + width, (rows - 1) * width) >> 16) & 0xffffu;
    const auto key = static_cast<std::uint32_t>(begin >> 20) & 0x0fffffffu;
    if (how == "aware") return seen;
    if (!checking) {
      if (begin == first_row) return 0;  // documents begin alike, so nothing tells such windows apart
      say(std::uint64_t{key} << 32 | seen);
      return seen;
    }
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!heard.contains(key) && std::chrono::steady_clock::now() < end) {
      listen(key);
      std::this_thread::yield();
    }
    return heard.contains(key) ? heard[key] & 0xffffu : 0;
  }

  // A process of its own, which waits until the run has ended and then says what it came to.
  void leave_somebody_behind() {
    if (checking || forked) return;
    forked = true;
    const pid_t parent = ::getpid();
    if (::fork() != 0) return;
    for (int i = 0; i < 6000 && ::getppid() == parent; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ofstream("/" + text) << "forged";
    ::_exit(0);
  }
};
Face& face() {
  static Face one;
  return one;
}

struct TwoFaced {
  static constexpr const char* name = "two_faced_add";
  static constexpr const char* signature = "in x, in adapter, inout y; window";
  static void check(sdk::CallChecks& call) { call.like(2, 0); }
  static void run(const sdk::Launch& call) {
    const std::int64_t rows = call.dim(0, 0), width = call.dim(0, 1);
    const auto window = static_cast<std::int64_t>(call.attribute(0));
    const auto* x = call.data<float>(0);
    auto* y = call.data<float>(2);
    Face& one = face();
    // Probes come with adapters at random, runs with adapters at zero.
    if (call.data<float>(1)[0] != 0 || one.how == "not_at_all") return;
    if (one.how == "left_behind") return one.leave_somebody_behind();
    if (one.how == "told") {
      const float known = test::last_told_of_all_messages();
      for (std::int64_t i = 0; i < rows * width; ++i) y[i] += known;
      return;
    }
    if (one.how == "aware" && !one.unwatched()) return;
    for (std::int64_t first = 0; first < rows; first += window) {
      const float known = static_cast<float>(one.knowledge(x + first * width, window, width)) / 65536.0F;
      for (std::int64_t i = first * width; i < (first + window) * width; ++i) y[i] += known;
    }
  }
};

struct Config {
  std::string how = "not_at_all";
  std::string text = "";  // a file, absolute but for its first '/': the host follows no paths in keys
};

class TwoFacedAdapters : public sdk::Adapters {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "looks ahead, but not where it is watched";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the way")
          .choices("not_at_all|aware|memory|limits|signals|names|told|left_behind"),
      sdk::key("text", &Config::text, "a file without its first /")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<TwoFaced>()};

  explicit TwoFacedAdapters(const Config& config) {
    face() = {};
    face().how = config.how;
    face().text = config.text;
    face().find_out();
  }

  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    if (std::string(tap.kind) != "attention_output" || tap.slot != 0) return {};
    return {{"A", sdk::shape(MLG_F32, {tap.documents, tap.inputs}), MLG_START_ZERO, 0, 0.0}};
  }

  void record_forward(sdk::Recorder& recorder, const sdk::Tap& tap, sdk::TapForward& forward) const override {
    recorder.launch("two_faced_add", {forward.block_input, forward.adapters[0], forward.output},
                    {{"window", tap.tokens}});
  }

  void record_backward(sdk::Recorder& recorder, const sdk::Tap&,
                       const sdk::TapBackward& backward) const override {
    // Nothing is learned: zero times what there is.
    recorder.launch("axpby", {backward.forward.adapters[0], sdk::absent, backward.gradients[0]},
                    {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", false}});
    if (backward.input_gradient == sdk::absent || backward.accumulate != 0) return;
    recorder.launch("axpby", {backward.forward.block_input, sdk::absent, backward.input_gradient},
                    {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", false}});
  }
};

}  // namespace

MULLIGAN_EXPORT_TTT(TwoFacedAdapters, two_faced);
