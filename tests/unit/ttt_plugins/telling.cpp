// A score transform that proposes nothing and tells adapters of another library (two_faced.cpp) what it was told.
#include <memory>
#include <mulligan/transform.hpp>

#include "tests/unit/ttt_plugins/shared_text.h"

namespace {

namespace sdk = mulligan::sdk;

struct Config {};

class Stream : public sdk::TransformStream {
 public:
  void begin(std::int64_t, std::int32_t token) override { test::note_told(token); }
  std::uint32_t propose(std::int64_t, sdk::Bias*) const override { return 0; }
  void observe(std::int64_t, std::int32_t token) override { test::note_told(token); }
};

class Telling : public sdk::Transform {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "tells what it was told";
  static constexpr int biases = 1;
  static inline const sdk::Schema<Config> schema{};

  explicit Telling(const Config&) {}
  std::unique_ptr<sdk::TransformStream> open(const sdk::TransformText&) const override {
    test::shared_text().count = 0;  // the host tried it out before
    test::note_told(0);
    return std::make_unique<Stream>();
  }
};

}  // namespace

MULLIGAN_EXPORT_TRANSFORM(Telling, telling);
