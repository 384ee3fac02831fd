// Continues a text, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
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

struct BatchShape {
  std::int64_t sequences = 1;
  std::int64_t length = 0;  // tokens of a sequence, and rotary positions of it
  enum class Wanted {
    last_sequence,  // logits of every token of the last sequence; the head multiplies all of the batch
    one_each,       // logits of one token of each sequence, the head's only rows, as in generation
  };
  Wanted wanted = Wanted::last_sequence;

  std::int64_t rows() const { return wanted == Wanted::one_each ? sequences : length; }
};

// BatchProgram: the one forward pass over several sequences of equal length at once, and the logits of some of their rows. The
// size of the batch changes logits only where head and matmuls process the whole batch.
class BatchProgram {
 public:
  // Parameters are read from `store` as `layouts` say; its inputs get names that follow from the shape. All references must
  // outlive this object. The program must be bound before a run.
  BatchProgram(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
               LayerOrderKind order, const BatchShape& shape);

  Program& program() { return *program_; }

  // `texts`: as many as the shape has sequences, of at most its length, not empty. Returns the logits after the softcap,
  // [rows of the shape, vocabulary] f32; for one_each those after the last token of each text. Valid until the next run of any
  // program of this vocabulary's store.
  std::span<const float> logits(std::span<const std::span<const std::int32_t>> texts);

 private:
  TensorStore& store_;
  BatchShape shape_;
  std::string prefix_;
  std::unique_ptr<Program> program_;
  PackedInputWriter inputs_;
  std::vector<std::int32_t> tokens_, boundaries_, last_;
  std::vector<float> logits_;
};

// NextToken: the tokens that follow texts, by the one forward pass.
class NextToken {
 public:
  // `window`: tokens of the longest context; of a longer text the last ones count. `sequences`: texts that are continued at once. Plans a
  // program for each length of context 32, 64, 128, ... up to the window. A token costs a forward pass over the shortest one that holds
  // the text so far. Parameters are read from `store` as `layouts` say. All references must outlive this object. The programs must
  // be bound before logits().
  NextToken(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
            LayerOrderKind order, std::int64_t window, std::int64_t sequences = 1);

  std::vector<Program*> programs();

  // The logits of the token that follows each text: [sequences, vocabulary] in f32, after the softcap, from the compute dtype. A text
  // is one document from its BOS on. Precondition: texts are not empty and of one length. Valid until the next call.
  std::span<const float> logits(std::vector<std::span<const std::int32_t>> texts);

 private:
  std::int64_t window_;
  std::map<std::int64_t, std::unique_ptr<BatchProgram>> lengths_;  // by tokens of context
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
  double seconds = 0;
};

// Continues `text`, one document from its BOS on. `on_text` may be empty. It gets the text of new tokens as soon as it is there, in whole
// UTF-8 characters (invalid bytes become U+FFFD). Ids beyond the tokenizer's are never chosen. Throws run_error for logits that are not
// finite.
GenerateResult generate(NextToken& model, const Tokenizer& tokenizer, std::vector<int> text,
                        const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text = {});

}  // namespace mulligan
