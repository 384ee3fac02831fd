// A score transform with a chosen flaw. Without one it raises the token that last followed the present one.
#include <mulligan/transform.hpp>

#include <map>
#include <string>
#include <vector>

namespace {

using namespace mulligan;

struct Config {
  std::string how = "not_at_all";
};

// What the first stream since the plugin was set up was told: knowledge that no stream may have of another.
std::vector<std::int32_t>& first_text() {
  static std::vector<std::int32_t> text;
  return text;
}

class Stream : public sdk::TransformStream {
 public:
  Stream(std::string how, std::size_t places)
      : how_(std::move(how)), last_(places, -1), is_first_(first_text().empty()) {}

  void begin(std::int64_t place, std::int32_t token) override {
    last_[static_cast<std::size_t>(place)] = token;
  }

  std::uint32_t propose(std::int64_t place, sdk::Bias* out) const override {
    if (how_ == "remembers" && !is_first_ && told_ < first_text().size()) {
      out[0] = {first_text()[told_], 5.0};
      return 1;
    }
    if (how_ == "impure" && ++asked_ % 2 == 0) return 0;
    const auto found = followed_.find(last_[static_cast<std::size_t>(place)]);
    if (found == followed_.end()) return 0;
    out[0] = {how_ == "outside" ? 1 << 30 : found->second, 1.5};
    return 1;
  }

  void observe(std::int64_t place, std::int32_t token) override {
    std::int32_t& last = last_[static_cast<std::size_t>(place)];
    followed_[last] = token;
    last = token;
    ++told_;
    if (is_first_ && how_ == "remembers") first_text().push_back(token);
  }

 private:
  std::string how_;
  std::map<std::int32_t, std::int32_t> followed_;
  std::vector<std::int32_t> last_;
  bool is_first_;
  std::size_t told_ = 0;
  mutable int asked_ = 0;
};

class FlawedTransform : public sdk::Transform {
 public:
  static constexpr const char* summary = "breaks its contract as `how` says";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "not_at_all, remembers, impure, outside")};

  explicit FlawedTransform(const Config& config) : config_(config) { first_text().clear(); }
  std::unique_ptr<sdk::TransformStream> open(const sdk::TransformText& text) const override {
    return std::make_unique<Stream>(config_.how, static_cast<std::size_t>(text.places));
  }

 private:
  Config config_;
};

}  // namespace

MULLIGAN_EXPORT_TRANSFORM(FlawedTransform, flawed_transform);
