// The [eval] and [ledger] sections: how validation is scored, and which budgets a result must keep. core_schema.cpp explains the
// keys.
#pragma once

#include <cstdint>

#include "framework/config/words.h"

namespace mulligan {

enum class EvalMode { rows, sliding };
template <>
inline constexpr auto config_words<EvalMode> = std::array{"rows", "sliding"};

// [eval]
struct EvalConfig {
  EvalMode mode = EvalMode::rows;
  int64_t sequence_length = 2048;  // tokens of a sequence or window; also the longest segment in rows mode
  int64_t stride = 64;             // sliding mode only: tokens between window starts, <= sequence_length
  int64_t packed_sequences = 16;
  bool drop_remainder = false;  // leave out the last partial batch, to match figures of the record's script
  int64_t tokens = 0;
  int64_t shares = 0;
  double save_seconds = 60;  // between saved states of eval and ttt; 0: only where a signal stops them
  bool use_ema = true;       // score the averaged weights where ema.decay > 0
};

enum class LedgerRules { open, strict };
template <>
inline constexpr auto config_words<LedgerRules> = std::array{"open", "strict"};

// [ledger] Limits of a run; 0 = no limit. `strict` refuses a result that breaks one, `open` reports it.
struct LedgerConfig {
  LedgerRules rules = LedgerRules::open;
  double train_seconds = 0.0;
  double eval_seconds = 0.0;
  int64_t artifact_bytes = 0;  // model and code together
};

}  // namespace mulligan
