// A quantiser that chooses over the whole model and breaks its contract in the way that `how` says.
#include <mulligan/quantizer.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::string how = "not_at_all";
};

class Chooser : public sdk::ModelQuantizer {
 public:
  static constexpr const char* summary = "chooses columns and corrections that cannot be";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the flaw")
          .choices("not_at_all|no_tensor|beyond|overlap|no_width|twice|rank|group|scale|code")};

  explicit Chooser(const Config& config) : how_(config.how) {}

  void quantize(const sdk::QuantizeRequest& request, sdk::QuantizeResult& result) override {
    std::fill_n(result.codes, request.rows * request.columns, std::int8_t{1});
    std::fill_n(result.scales, request.rows, 1.0F);
    if (request.protected_count > 0) std::fill_n(result.protected_scales, request.rows, 0.5F);
    if (how_ == "code" && request.protected_count > 0) result.codes[request.protected_starts[0]] = 100;
    result.squared_error = 0;
  }

  void protect(sdk::QuantizeTensors tensors, mlg_quantize_choices& choices) override {
    choices.protected_size = 2;
    choices.protected_bits = how_ == "no_width" ? 9 : 7;
    choices.protect(choices.context, how_ == "no_tensor" ? static_cast<std::int64_t>(tensors.size()) : 0, 0);
    if (how_ == "beyond") choices.protect(choices.context, 0, tensors[0].columns - 1);
    if (how_ == "overlap") choices.protect(choices.context, 0, 1);
  }

  void correct(sdk::QuantizeTensors tensors, mlg_quantize_choices& choices) override {
    const std::vector<std::int8_t> left(static_cast<std::size_t>(tensors[0].rows), 1);
    const std::vector<std::int8_t> right(static_cast<std::size_t>(tensors[0].columns), 1);
    const float scale = how_ == "scale" ? 1e-9F : 2.0F;
    const mlg_low_rank correction{how_ == "rank" ? tensors[0].rows + tensors[0].columns : 1,
                                  left.data(),
                                  right.data(),
                                  how_ == "group" ? 0 : tensors[0].rows,
                                  tensors[0].columns,
                                  &scale,
                                  &scale};
    choices.correct(choices.context, 0, &correction);
    if (how_ == "twice") choices.correct(choices.context, 0, &correction);
  }

  double extra_bytes(sdk::QuantizeTensors) override { return 1; }

 private:
  std::string how_;
};

}  // namespace

MULLIGAN_EXPORT_QUANTIZER(Chooser, flawed_chooser);
