#include "framework/config/model_elements.h"
#include "framework/config/run_config.h"
#include "framework/core/error.h"
#include "framework/model/elements/attention/config.h"
#include "framework/model/elements/masking/config.h"

namespace mulligan {
namespace elements::masking {

void declare_keys(Schema<Config>& s) {
  s.key("share", &Config::share,
        "share of a row's tokens that are hidden and predicted from both sides, usually 0.15; 0 = off: the "
        "next token is predicted. Its loss is not in bits per byte")
      .range(0, 1);
  s.key("mask_share", &Config::mask_share, "share of the chosen tokens that become the mask token")
      .range(0, 1);
  s.key("random_share", &Config::random_share,
        "share of the chosen tokens that become any token of the vocabulary; the rest stay as they are")
      .range(0, 1);
  s.key("token", &Config::token, "the mask token: one that the text does not have, such as padding")
      .range(0, 65535);
  s.key("seed", &Config::seed, "which tokens are chosen, and what becomes of them, in every row").at_least(0);
}

namespace {

void check(const ModelConfig& m, const Settings& s) {
  const Config own = config_of(m);
  if (own.share == 0) return;
  config_error_if(own.mask_share + own.random_share > 1,
                  "{} is {} and {} is {}, which is more than all chosen tokens; their sum is at most 1.",
                  s.where("model.masking.mask_share"), own.mask_share, s.where("model.masking.random_share"),
                  own.random_share);
  config_error_if(own.token >= m.vocabulary,
                  "{} is {}, outside the vocabulary of {} = {}; choose a token that the text does not have.",
                  s.where("model.masking.token"), own.token, s.where("model.vocabulary"), m.vocabulary);
  if (!attention::active(attention::config_of(m))) return;
  throw config_error(
      "{} is {}, and [model.attention] asks for what attention to both sides does not have; leave out its "
      "stabilize, normalizer and output_rounding.",
      s.where("model.masking.share"), own.share);
}

// A model that fills in masked tokens is trained and scored by its own loss, and nothing else.
void check_run(const RunConfig& c, const Settings& s) {
  if (!predicts_masked(c.model)) return;
  const auto refuse = [&](bool asked, std::string_view what, std::string_view fix) {
    if (!asked) return;
    throw config_error("{} is on, so that masked tokens are filled in, but {}; {}.",
                       s.where("model.masking.share"), what, fix);
  };
  refuse(c.ttt.has_value(), "[ttt] adapts a model that predicts the next token", "remove [ttt]");
  refuse(c.quantize.has_value(), "[quantize] makes an artifact, which is scored by the next token",
         "remove [quantize]");
  refuse(c.eval.mode == EvalMode::sliding, "eval.mode is \"sliding\", whose windows score the next token",
         "set eval.mode = \"rows\"");
  refuse(
      c.ledger.rules == LedgerRules::strict,
      "ledger.rules is \"strict\", and the loss of masked tokens is not in bits per byte, so it cannot be a record",
      "set ledger.rules = \"open\"");
  refuse(c.metrics.attention_every > 0, "metrics.attention_every looks at causal attention",
         "set metrics.attention_every = 0");
}

}  // namespace

ElementDeclaration declaration() {
  return {"masking", "Masked-language-model objective (docs/numerics/masked_language_model.md).",
          declare_element_table<Config>, check, check_run};
}

}  // namespace elements::masking

void require_next_token(const ModelConfig& model, std::string_view what) {
  const double share = elements::masking::config_of(model).share;
  if (share == 0) return;
  throw config_error(
      "this model fills in masked tokens (model.masking.share = {}), but {}; take a model that predicts the "
      "next token.",
      share, what);
}

}  // namespace mulligan
