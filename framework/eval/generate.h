// Continues a text, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/data/tokenizer.h"
#include "framework/graph/program.h"
#include "framework/model/packed_inputs.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// How a token is chosen from the logits.
struct Sampling {
  double temperature = 1.0;  // 0: always the most probable token
  std::int64_t top_k = 0;    // choose among the k most probable; 0: among all
  std::uint64_t seed = 0;
};

// The token for draw number `draw` of the seed, in double precision: a pure function of its arguments (Philox). For equal logits the
// lower token counts as the more probable. Precondition: logits are finite and not empty.
int choose_token(std::span<const float> logits, const Sampling& sampling, std::uint64_t draw);

// -log softmax(logits)[token], in nats.
double token_loss_nats(std::span<const float> logits, int token);

// NextToken: the token that follows a text, by the one forward pass.
struct NextTokenOptions {
  DType compute = MLG_F32;
  LayerOrderKind layer_order = LayerOrderKind::plain;  // recurrent models are scored looped
  std::int64_t window = 0;  // tokens of the longest context; for a longer text the last ones count
  // Makes the adapters of one program; empty: none. Each lives as long as its program.
  std::function<std::unique_ptr<Taps>()> adapters;
};

class NextToken {
 public:
  // Plans a program for each length of context 32, 64, 128, ... up to the window. A token costs a forward pass over the shortest one that
  // holds the text so far. Parameters are read from `store` as `layouts` say. All references must outlive this object. The programs must
  // be bound before logits().
  NextToken(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
            NextTokenOptions options);

  std::vector<Program*> programs();

  // The logits of the token that follows `text`: [vocabulary] in f32, after the softcap, from the compute dtype. `text`
  // is one document from its BOS on. Precondition: `text` is not empty. Valid until the next call.
  std::span<const float> logits(std::span<const int> text);

 private:
  struct Length {  // of context
    std::unique_ptr<Taps> adapters;
    std::unique_ptr<Program> program;
    PackedInputWriter inputs;
  };
  Length make(const ModelConfig& model, const std::vector<ParameterLayout>& layouts, std::int64_t tokens);

  TensorStore& store_;
  NextTokenOptions options_;
  std::map<std::int64_t, Length> lengths_;  // by tokens
  std::vector<std::int32_t> tokens_;
  std::vector<float> logits_;
};

struct GenerateOptions {
  Sampling sampling;
  std::int64_t max_tokens = 200;
  int bos_id = 1;  // ends the text: the model says that another document begins
};

struct GenerateResult {
  std::vector<int> tokens;  // generated, without the BOS that ended them
  bool ended = false;       // by BOS
  double loss_nats = 0;     // -log probability of `tokens` by the model, before temperature and top-k
};

// Continues `text`, one document from its BOS on. `on_text` may be empty. It gets the text of new tokens as soon as it is there, in whole
// UTF-8 characters (invalid bytes become U+FFFD). Ids beyond the tokenizer's are never chosen. Throws run_error for logits that are not
// finite.
GenerateResult generate(NextToken& model, const Tokenizer& tokenizer, std::vector<int> text,
                        const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text = {});

}  // namespace mulligan
