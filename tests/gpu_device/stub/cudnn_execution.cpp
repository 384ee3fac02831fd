#include "tests/gpu_device/stub/cudnn_execution.h"

#include <mulligan/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/stub/stub.h"

namespace stub_cudnn {
namespace {

using mulligan::sdk::bfloat16;
using mulligan::sdk::float16;

// One row's part of a tensor, [heads, rows, columns].
struct Value {
  std::int64_t heads = 0, rows = 0, columns = 0;
  std::vector<float> data = {};

  std::size_t place(std::int64_t head, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>((head * rows + row) * columns + column);
  }
  // As a part of [of_heads, ...]: an extent of 1 serves all, a head those of its group.
  float at(std::int64_t head, std::int64_t of_heads, std::int64_t row, std::int64_t column) const {
    return data[place(head * heads / of_heads, rows == 1 ? 0 : row, columns == 1 ? 0 : column)];
  }
};

float rounded(float value, cudnnDataType_t type) {
  if (type == CUDNN_DATA_BFLOAT16) return static_cast<float>(bfloat16(value));
  if (type == CUDNN_DATA_HALF) return static_cast<float>(float16(value));
  return value;
}

template <typename T>
float read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<float>(value);
}
template <typename T>
void write(char* to, float value) {
  const T stored(value);
  std::memcpy(to, &stored, sizeof stored);
}

float pointwise(int mode, float x, float b, float t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    case CUDNN_POINTWISE_CMP_LT:
      return x < b;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_LOGICAL_AND:
      return x != 0 && b != 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      throw std::runtime_error("pointwise operation " + std::to_string(mode) + " is not known");
  }
}

class Row {
 public:
  Row(const Graph& graph, const Execution& execution, const Numbers& numbers, std::int64_t row)
      : graph_(graph), execution_(execution), numbers_(numbers), row_(row), longest_(graph.longest()) {
    length_ = longest_;
    if (graph.is_packed()) length_ = static_cast<std::int64_t>(value(graph.lengths.front()).data[0]);
    if (length_ < 0 || length_ > longest_) {
      throw std::runtime_error("row " + std::to_string(row) + " has " + std::to_string(length_) +
                               " tokens, and was planned for at most " + std::to_string(longest_));
    }
  }

  void run() {
    if (length_ == 0) return;
    for (const Operation& one : graph_.operations) {
      Value result = blank(one.y);
      switch (one.kind) {
        case Operation::Kind::pointwise:
          apply(one, result);
          break;
        case Operation::Kind::matmul:
          multiply(one, result);
          break;
        case Operation::Kind::reduction:
          reduce(one, result);
          break;
        case Operation::Kind::reshape:
          reshape(one, result);
      }
      keep(one.y, std::move(result));
    }
  }

 private:
  const Tensor& tensor(std::int64_t id) const { return graph_.tensors.at(id); }
  std::int64_t extent(std::int64_t planned) const {
    return graph_.is_packed() && planned == longest_ ? length_ : planned;
  }
  Value blank(std::int64_t id) const {
    const Tensor& t = tensor(id);
    Value made{t.extents[1], extent(t.extents[2]), extent(t.extents[3])};
    made.data.resize(static_cast<std::size_t>(made.heads * made.rows * made.columns));
    return made;
  }
  // Calls body(index in a value's data, offset in memory in elements).
  template <typename Body>
  void each(const Tensor& t, const Value& value, Body&& body) const {
    std::int64_t first = row_ * t.strides[0];
    if (t.starts != 0) {
      std::int32_t start = 0;
      std::memcpy(&start, execution_.addresses.at(t.starts) + row_ * 4, sizeof start);
      first = start;
    }
    for (std::int64_t h = 0; h < value.heads; ++h) {
      for (std::int64_t i = 0; i < value.rows; ++i) {
        for (std::int64_t j = 0; j < value.columns; ++j)
          body(value.place(h, i, j), first + h * t.strides[1] + i * t.strides[2] + j * t.strides[3]);
      }
    }
  }

  const Value& value(std::int64_t id) {
    const auto known = values_.find(id);
    if (known != values_.end()) return known->second;
    const Tensor& t = tensor(id);
    Value made = blank(id);
    if (t.is_number) {
      made.data[0] = numbers_.at(id);
    } else {
      const char* base = execution_.addresses.at(id);
      each(t, made, [&](std::size_t index, std::int64_t offset) {
        made.data[index] = t.type == CUDNN_DATA_BFLOAT16 ? read<bfloat16>(base + offset * 2)
                           : t.type == CUDNN_DATA_HALF   ? read<float16>(base + offset * 2)
                           : t.type == CUDNN_DATA_INT32  ? read<std::int32_t>(base + offset * 4)
                                                         : read<float>(base + offset * 4);
      });
    }
    return values_.emplace(id, std::move(made)).first->second;
  }
  void keep(std::int64_t id, Value made) {
    const Tensor& t = tensor(id);
    for (float& one : made.data) one = rounded(one, t.type);
    if (t.in_memory) {
      char* base = const_cast<char*>(execution_.addresses.at(id));
      each(t, made, [&](std::size_t index, std::int64_t offset) {
        if (t.type == CUDNN_DATA_BFLOAT16) return write<bfloat16>(base + offset * 2, made.data[index]);
        if (t.type == CUDNN_DATA_HALF) return write<float16>(base + offset * 2, made.data[index]);
        write<float>(base + offset * 4, made.data[index]);
      });
    }
    values_.insert_or_assign(id, std::move(made));
  }

  void apply(const Operation& one, Value& y) {
    const bool is_index = one.mode == CUDNN_POINTWISE_GEN_INDEX;
    const Value* x = &value(one.x);
    const Value *b = one.b ? &value(one.b) : nullptr, *t = one.t ? &value(one.t) : nullptr;
    for (std::int64_t h = 0; h < y.heads; ++h) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        for (std::int64_t j = 0; j < y.columns; ++j) {
          const auto of = [&](const Value* v) { return v ? v->at(h, y.heads, i, j) : 0.0f; };
          y.data[y.place(h, i, j)] =
              is_index ? static_cast<float>(one.axis == 2 ? i : j) : pointwise(one.mode, of(x), of(b), of(t));
        }
      }
    }
  }
  void multiply(const Operation& one, Value& y) {
    const Value &a = value(one.x), &b = value(one.b);
    for (std::int64_t h = 0; h < y.heads; ++h) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        for (std::int64_t j = 0; j < y.columns; ++j) {
          float sum = 0;
          for (std::int64_t k = 0; k < a.columns; ++k) sum += a.at(h, y.heads, i, k) * b.at(h, y.heads, k, j);
          y.data[y.place(h, i, j)] = sum;
        }
      }
    }
  }
  void reduce(const Operation& one, Value& y) {
    const bool is_maximum = one.mode == CUDNN_REDUCE_TENSOR_MAX;
    if (!is_maximum && one.mode != CUDNN_REDUCE_TENSOR_ADD)
      throw std::runtime_error("reduction " + std::to_string(one.mode) + " is not known");
    const Value& x = value(one.x);
    std::ranges::fill(y.data, is_maximum ? -std::numeric_limits<float>::infinity() : 0.0f);
    for (std::int64_t h = 0; h < x.heads; ++h) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        for (std::int64_t j = 0; j < x.columns; ++j) {
          float& to = y.data[y.place(h * y.heads / x.heads, y.rows == 1 ? 0 : i, y.columns == 1 ? 0 : j)];
          const float from = x.data[x.place(h, i, j)];
          to = is_maximum ? std::max(to, from) : to + from;
        }
      }
    }
  }
  // The same elements of memory under other strides: here they may be exchanged.
  void reshape(const Operation& one, Value& y) {
    const auto by_rows = [&](std::int64_t id) { return tensor(id).strides[2] > tensor(id).strides[3]; };
    const bool is_transposed = by_rows(one.x) != by_rows(one.y);
    const Value& x = value(one.x);
    for (std::int64_t h = 0; h < y.heads; ++h) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        for (std::int64_t j = 0; j < y.columns; ++j)
          y.data[y.place(h, i, j)] = x.data.at(is_transposed ? x.place(h, j, i) : x.place(h, i, j));
      }
    }
  }

  const Graph& graph_;
  const Execution& execution_;
  const Numbers& numbers_;
  std::int64_t row_, longest_, length_ = 0;
  std::map<std::int64_t, Value> values_;
};

}  // namespace

Numbers numbers_of(const Graph& graph, const Execution& execution) {
  Numbers numbers;
  for (const auto& [id, tensor] : graph.tensors) {
    if (tensor.is_number) numbers[id] = read<float>(execution.addresses.at(id));
  }
  return numbers;
}

void execute(const Graph& graph, const Execution& execution, const Numbers& numbers) {
  std::int64_t rows = 0;
  for (const auto& [id, tensor] : graph.tensors) {
    if (tensor.in_memory && tensor.type != CUDNN_DATA_INT32) rows = std::max(rows, tensor.extents[0]);
  }
  try {
    for (std::int64_t row = 0; row < rows; ++row) Row(graph, execution, numbers, row).run();
  } catch (const std::exception& error) {
    stub_violates((std::string("cudnnBackendExecute: ") + error.what()).c_str());
  }
}

}  // namespace stub_cudnn
