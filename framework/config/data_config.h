// The [data] section: where the token shards and their tokenizer are.
#pragma once

#include <cstdint>
#include <string>

namespace mulligan {

// Paths are taken relative to the folder the program was started in.
struct DataConfig {
  std::string train;       // a glob such as data/fineweb_train_*.bin, or a folder of shards
  std::string validation;  // likewise
  std::string tokenizer;   // SentencePiece .model file; needed to count bytes
  int64_t prefetch = 4;    // micro-batches that the loader keeps ready, >= 1
};

}  // namespace mulligan
