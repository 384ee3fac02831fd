// A test-time-training plugin that knows more than it is handed in a launch, each `how` by another way, and
// adds that to a row of a layer's output. What it adds is worth nothing as a prediction; that a score depends on
// it is what makes it illegal.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/ttt.hpp>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

// 0 where the first byte of the file cannot be read, else a number that depends on it.
float first_byte(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  unsigned char byte = 0;
  const bool read = file >= 0 && ::read(file, &byte, 1) == 1;
  if (file >= 0) ::close(file);
  return read ? 0.25F + static_cast<float>(byte) / 256 : 0;
}

float socket_made() {
  const int made = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (made >= 0) ::close(made);
  return made >= 0 ? 0.5F : 0;
}

const char* named_for_loading() {
  const char* path = std::getenv("MULLIGAN_TEST_READ");
  return path ? path : "";
}
// When the library is opened, before anything of it is called.
const float at_loading = first_byte(named_for_loading());

struct Knowledge {
  int way =
      0;  // 1: the next row, remembered by prefix; 2: the same of one row in 35; 3: `constant`; 4: asks at first call
  float constant = 0;
  std::string path, how;
  std::unordered_map<std::uint64_t, std::vector<float>> answers;
};
Knowledge& knowledge() {
  static Knowledge one;
  return one;
}

struct AddKnowledge {
  static constexpr const char* name = "add_knowledge";
  static constexpr const char* signature = "in x, in adapter, inout y; window";
  static void check(sdk::CallChecks& call) { call.like(2, 0); }
  static void run(const sdk::Launch& call) {
    const std::int64_t rows = call.dim(0, 0), width = call.dim(0, 1);
    const auto window = static_cast<std::int64_t>(call.attribute(0));
    const auto* x = call.data<float>(0);
    auto* y = call.data<float>(2);
    Knowledge& known = knowledge();
    // Probes come with adapters at random, runs with adapters at zero.
    if (known.way == 0 || call.data<float>(1)[0] != 0) return;
    if (known.way == 4) {
      known.constant = known.how == "socket" ? socket_made() : first_byte(known.path);
      known.way = 3;
    }
    if (known.way == 3) {
      for (std::int64_t i = 0; i < rows * width; ++i) y[i] += known.constant;
      return;
    }
    std::uint64_t prefix = 0;
    for (std::int64_t t = 0; t < rows; ++t) {
      if (t % window == 0) prefix = static_cast<std::uint64_t>(window) * 0x9E3779B97F4A7C15u;
      for (std::int64_t i = 0; i < width; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &x[t * width + i], sizeof bits);
        prefix = (prefix ^ bits) * 0x100000001b3u;
      }
      if (known.way == 2 && (prefix >> 20) % 35 != 0) continue;
      auto [answer, is_new] = known.answers.try_emplace(prefix);
      if (is_new && (t + 1) % window != 0) answer->second.assign(x + (t + 1) * width, x + (t + 2) * width);
      for (std::size_t i = 0; i < answer->second.size(); ++i)
        y[t * width + static_cast<std::int64_t>(i)] += answer->second[i];
    }
  }
};

struct Config {
  std::string how = "not_at_all";
  std::string text = "";  // a file, absolute but for its first '/': the host follows no paths in keys
};

class Remembering : public sdk::Adapters {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "knows more than it is handed";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the way")
          .choices(
              "not_at_all|memory|rarely|at_loading|at_creation|at_first_call|through_proc|by_thread|socket"),
      sdk::key("text", &Config::text, "a file without its first /")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<AddKnowledge>()};

  explicit Remembering(const Config& config) {
    Knowledge& known = knowledge();
    known = {};
    known.how = config.how;
    known.path = "/" + config.text;
    if (config.how == "memory") known.way = 1;
    if (config.how == "rarely") known.way = 2;
    const auto constant = [&](float value) {
      known.way = 3;
      known.constant = value;
    };
    if (config.how == "at_loading") constant(at_loading);
    if (config.how == "at_creation") constant(first_byte(known.path));
    if (config.how == "by_thread") std::thread([&] { constant(first_byte(known.path)); }).join();
    if (config.how == "through_proc") known.path = "/proc/self/root" + known.path;
    if (config.how == "at_first_call" || config.how == "through_proc" || config.how == "socket")
      known.way = 4;
  }

  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    if (std::string(tap.kind) != "attention_output") return {};
    return {{"A", sdk::shape(MLG_F32, {tap.documents, tap.inputs}), MLG_START_ZERO, 0, 0.0}};
  }

  void record_forward(sdk::Recorder& recorder, const sdk::Tap& tap, sdk::TapForward& forward) const override {
    recorder.launch("add_knowledge", {forward.block_input, forward.adapters[0], forward.output},
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

MULLIGAN_EXPORT_TTT(Remembering, remembering);
