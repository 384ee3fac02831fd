// The score transform `ngram_tilt` gives a token `boost` nats on its logit if it has often followed the last order - 1 tokens:
// in at least the share `threshold` of their occurrences. Counts grow with every scored token; one earlier occurrence already
// makes the share 1.
//
// A text that is never begun (places of one running text) takes its own first token as the oldest of its
// first context, as the record does.
#include <mulligan/transform.hpp>

#include <algorithm>

#include "ngram_counts.h"

namespace mulligan::transforms {
namespace {

struct NgramTiltConfig {
  std::int64_t order = 16;
  double threshold = 0.8;
  double boost = 2.625;
};

class NgramStream : public sdk::TransformStream {
 public:
  NgramStream(const NgramTiltConfig& config, const sdk::TransformText& text)
      : config_(config),
        counts_(static_cast<std::size_t>(config.order - 1)),
        places_(static_cast<std::size_t>(text.places)) {}

  void begin(std::int64_t place, std::int32_t token) override {
    Place& at = places_[static_cast<std::size_t>(place)];
    at = {};
    push(at, token);
  }

  std::uint32_t propose(std::int64_t place, sdk::Bias* out) const override {
    const Place& at = places_[static_cast<std::size_t>(place)];
    if (at.history.size() < counts_.length()) return 0;
    const ContextCount* counts = counts_.find(at.key);
    if (!counts || counts->confidence() < static_cast<float>(config_.threshold)) return 0;
    out[0] = {counts->top_token, config_.boost};
    return 1;
  }

  void observe(std::int64_t place, std::int32_t token) override {
    Place& at = places_[static_cast<std::size_t>(place)];
    if (!at.begun) push(at, token);
    if (at.history.size() >= counts_.length()) counts_.count(at.key, token);
    push(at, token);
  }

 private:
  struct Place {
    bool begun = false;
    std::vector<std::int32_t> history;  // the last tokens, at most a context's
    std::uint64_t key = 0;              // of a whole history
  };
  void push(Place& at, std::int32_t token) const {
    at.begun = true;
    if (counts_.length() == 0) return;
    if (at.history.size() == counts_.length()) {
      std::rotate(at.history.begin(), at.history.begin() + 1, at.history.end());
      at.history.back() = token;
    } else {
      at.history.push_back(token);
    }
    if (at.history.size() == counts_.length()) at.key = NgramCounts::context_key(at.history);
  }

  NgramTiltConfig config_;
  NgramCounts counts_;
  std::vector<Place> places_;
};

class NgramTilt : public sdk::Transform {
 public:
  static constexpr const char* summary =
      "adds a bias to the token that mostly followed the last tokens in earlier text";
  static inline const sdk::Schema<NgramTiltConfig> schema{
      sdk::key("order", &NgramTiltConfig::order,
               "tokens of an n-gram: the context's and the one that follows")
          .range(1, kMostTokens + 1),
      sdk::key("threshold", &NgramTiltConfig::threshold,
               "share of a context's occurrences from which on its most frequent token is raised")
          .range(0, 1),
      sdk::key("boost", &NgramTiltConfig::boost, "nats that are added to that token's logit").range(0, 50)};

  explicit NgramTilt(const NgramTiltConfig& config) : config_(config) {}
  std::unique_ptr<sdk::TransformStream> open(const sdk::TransformText& text) const override {
    return std::make_unique<NgramStream>(config_, text);
  }

 private:
  NgramTiltConfig config_;
};

}  // namespace
}  // namespace mulligan::transforms

MULLIGAN_EXPORT_TRANSFORM(mulligan::transforms::NgramTilt, ngram_tilt);
