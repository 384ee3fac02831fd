// A wrapper with a chosen flaw. Sound, the master goes on from halfway between the weights at rest before and after the update.
#include <mulligan/wrapper.hpp>

#include <string>

namespace {

using namespace mulligan;

struct Config {
  std::string how = "not_at_all";
};

class FlawedWrapper : public sdk::Wrapper {
 public:
  static constexpr const char* summary = "breaks its contract as `how` says";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "not_at_all, misnames, unwritten_scratch, remembers, joins")};

  explicit FlawedWrapper(const Config& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return 1; }

  void record(sdk::Recorder& recorder, std::span<const sdk::WrappedParameter> parameters,
              sdk::Value) override {
    for (const sdk::WrappedParameter& p : parameters) {
      const mlg_tensor type = recorder.describe(p.master);
      const std::string name = config_.how == "misnames" ? "state" : p.name;
      const sdk::Value before = recorder.state(name + ".before", type);
      const sdk::Value unwritten = recorder.scratch(type);
      if (config_.how == "unwritten_scratch") recorder.launch("cast", {unwritten, p.master});
      if (config_.how == "joins") {
        const std::int64_t last = sdk::element_count(type) - 1;
        const auto one = [&](sdk::Value value, std::int64_t at) {
          return recorder.view(value, at, sdk::shape(static_cast<mlg_dtype>(type.dtype), {1}));
        };
        recorder.launch("cast", {one(p.master, last), one(p.master, 0)});
      }
      recorder.launch("cast", {p.rest, before});
      recorder.launch("cast", {p.master, p.rest});
      recorder.launch("axpby", {p.rest, before, p.master},
                      {{"alpha", 0.5}, {"beta", 0.5}, {"accumulate_y", 0}});
    }
  }

  void scalars(const sdk::WrapperStep& step, std::span<float> values) const override {
    values[0] = static_cast<float>(step.step + (config_.how == "remembers" ? ++calls_ : 0));
  }

 private:
  Config config_;
  mutable std::int64_t calls_ = 0;
};

}  // namespace

MULLIGAN_EXPORT_WRAPPER(FlawedWrapper, flawed_wrapper);
