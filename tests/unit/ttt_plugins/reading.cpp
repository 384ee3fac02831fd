// A score transform that has the text from elsewhere: it reads the shard that is scored, finds where a
// document stands in it and proposes the token that comes. `how` says when it reads.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mulligan/transform.hpp>
#include <string>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

using Text = std::vector<std::uint16_t>;

Text read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Text text;
  for (std::size_t i = 1024; i + 1 < bytes.size(); i += 2) {
    text.push_back(static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[i]) |
                                              static_cast<unsigned char>(bytes[i + 1]) << 8));
  }
  return text;
}

Text read_at_loading() {
  const char* path = std::getenv("MULLIGAN_TEST_READ");
  return path ? read(path) : Text();
}
const Text loaded = read_at_loading();

struct Config {
  std::string how = "not_at_all";
  std::string text = "";  // a file, absolute but for its first '/': the host follows no paths in keys
};

// Where the documents at its places may stand in the text.
class Stream : public sdk::TransformStream {
 public:
  Stream(const Text& text, std::size_t places) : text_(text), found_(places), told_(places) {}

  void begin(std::int64_t place, std::int32_t token) override {
    auto& found = found_[static_cast<std::size_t>(place)];
    found.clear();
    for (std::size_t i = 0; i + 1 < text_.size(); ++i) {
      if (text_[i] == token) found.push_back(i + 1);
    }
  }
  std::uint32_t propose(std::int64_t place, sdk::Bias* out) const override {
    const auto& found = found_[static_cast<std::size_t>(place)];
    if (found.empty()) return 0;
    out[0] = {text_[found.front()], 12.0};
    return 1;
  }
  void observe(std::int64_t place, std::int32_t token) override {
    std::vector<std::size_t> still;
    for (const std::size_t i : found_[static_cast<std::size_t>(place)]) {
      if (text_[i] == token && i + 1 < text_.size()) still.push_back(i + 1);
    }
    found_[static_cast<std::size_t>(place)] = still;
  }

 private:
  const Text& text_;
  std::vector<std::vector<std::size_t>> found_;
  std::vector<std::size_t> told_;
};

class Reading : public sdk::Transform {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "has the text from elsewhere";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "when")
          .choices("not_at_all|at_loading|at_creation|at_opening|through_proc"),
      sdk::key("text", &Config::text, "a file without its first /")};

  explicit Reading(const Config& config) : config_(config) {
    if (config.how == "at_loading") text_ = loaded;
    if (config.how == "at_creation") text_ = read("/" + config.text);
  }
  std::unique_ptr<sdk::TransformStream> open(const sdk::TransformText& text) const override {
    if (text_.empty() && config_.how == "at_opening") text_ = read("/" + config_.text);
    if (text_.empty() && config_.how == "through_proc") text_ = read("/proc/self/root/" + config_.text);
    return std::make_unique<Stream>(text_, static_cast<std::size_t>(text.places));
  }

 private:
  Config config_;
  mutable Text text_;
};

}  // namespace

MULLIGAN_EXPORT_TRANSFORM(Reading, reading);
