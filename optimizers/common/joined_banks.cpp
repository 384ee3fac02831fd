#include "optimizers/common/joined_banks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace mulligan::optimizers {
namespace {

// Elements: banks begin at multiples of 256 bytes in bf16, where kernels like tensors to begin.
constexpr std::int64_t kAlignment = 128;

// [n, n] or [B, n, n]: the smaller Gram matrices of a bank.
mlg_tensor gram_shape(mlg_tensor bank) {
  std::int64_t &rows = bank.shape[bank.rank - 2], &columns = bank.shape[bank.rank - 1];
  rows = columns = std::min(rows, columns);
  return bank;
}

}  // namespace

bool JoinedBanks::joins(std::span<const mlg_tensor> banks) {
  return banks.size() > 1 && std::all_of(banks.begin(), banks.end(), [](const mlg_tensor& bank) {
           return sdk::element_count(bank) % kAlignment == 0 &&
                  sdk::element_count(gram_shape(bank)) % kAlignment == 0;
         });
}

JoinedBanks::JoinedBanks(sdk::Recorder& recorder, std::span<const mlg_tensor> banks) : recorder_(recorder) {
  const auto dtype = static_cast<mlg_dtype>(banks[0].dtype);
  std::int64_t elements = 0, gram_elements = 0;
  std::map<std::int64_t, std::vector<std::size_t>> by_size;  // of the Gram matrices
  for (std::size_t i = 0; i < banks.size(); ++i) {
    elements += sdk::element_count(banks[i]);
    gram_elements += sdk::element_count(gram_shape(banks[i]));
    by_size[gram_shape(banks[i]).shape[banks[i].rank - 1]].push_back(i);
  }
  x_ = recorder.scratch(sdk::shape(dtype, {elements}));
  next_ = recorder.scratch(sdk::shape(dtype, {elements}));
  gram_ = recorder.scratch(sdk::shape(dtype, {gram_elements}));
  factor_ = recorder.scratch(sdk::shape(dtype, {gram_elements}));
  banks_.resize(banks.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < banks.size(); ++i) {
    const mlg_tensor& shape = banks[i];
    banks_[i].tall = shape.shape[shape.rank - 2] > shape.shape[shape.rank - 1];
    banks_[i].x = recorder.view(x_, at, shape);
    banks_[i].next = recorder.view(next_, at, shape);
    at += sdk::element_count(shape);
  }
  at = 0;
  for (const auto& [n, members] : by_size) {
    const std::int64_t begin = at;
    for (const std::size_t i : members) {
      const mlg_tensor shape = gram_shape(banks[i]);
      banks_[i].gram = recorder.view(gram_, at, shape);
      banks_[i].factor = recorder.view(factor_, at, shape);
      at += sdk::element_count(shape);
    }
    const mlg_tensor all = sdk::shape(dtype, {(at - begin) / (n * n), n, n});
    squares_.push_back({recorder.view(gram_, begin, all), recorder.view(factor_, begin, all)});
  }
}

void JoinedBanks::record(std::span<const Quintic> polynomials, int iterations) {
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const Quintic& q = polynomials[std::min<std::size_t>(iteration, polynomials.size() - 1)];
    for (const Bank& bank : banks_) {
      record_symmetric(recorder_, bank.x, bank.tall, bank.x, !bank.tall, bank.gram, 1.0, 0.0);
    }
    recorder_.launch("cast", {gram_, factor_});
    for (const Squares& same : squares_) {
      record_symmetric(recorder_, same.gram, false, same.gram, false, same.factor, q.c, q.b);
    }
    recorder_.launch("cast", {x_, next_});
    for (Bank& bank : banks_) {
      record_last_matmul(recorder_, bank.x, bank.factor, bank.tall, bank.next, q.a);
      std::swap(bank.x, bank.next);
    }
    std::swap(x_, next_);
  }
}

}  // namespace mulligan::optimizers
