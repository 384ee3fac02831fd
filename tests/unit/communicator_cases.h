// Transfers with what they must give, for tests of communicators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ranks/communicator.h"

namespace mulligan {

struct TransferCase {
  Collective kind;
  DType dtype;
  std::int64_t count;
  bool in_place = false;
  int root = 0;
  std::string text() const;
};

// Every collective with every dtype that it takes, odd and empty and long counts, in place and not.
std::vector<TransferCase> transfer_cases(int world_size);

// Makes the tensors "from<name>" and "to<name>" (in place: one). Three more elements follow those that the transfer concerns.
void create_case(TensorStore& store, const TransferCase& one, const std::string& name, int rank,
                 int world_size);
Transfer transfer_of(const TransferCase& one, const std::string& name);
// What is wrong with the tensors of that case after the transfer, or empty.
std::string case_problem(const TensorStore& store, const TransferCase& one, const std::string& name, int rank,
                         int world_size);

}  // namespace mulligan
