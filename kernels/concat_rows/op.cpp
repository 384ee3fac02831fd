#include "kernels/concat_rows/op.h"

#include <array>
#include <stdexcept>
#include <vector>

#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

constexpr std::size_t most = 4;

const KernelRules concat_rows_rules{
    {"concat_rows_fwd", RowRule::mixing, "", "packed q, k, v weights", "q-k norm, rotary, XSA, gate", true},
    {"concat_rows_bwd", RowRule::mixing, "", "", "q-k norm, rotary, XSA, gate", true}};

}  // namespace

Value concat_rows(Tape& tape, std::span<const Value> matrices, std::int64_t rows, std::int64_t width) {
  if (matrices.empty() || matrices.size() > most) throw std::logic_error("concat_rows: one to four matrices");
  Graph& graph = tape.graph();
  std::vector<Value> parts(matrices.begin(), matrices.end());
  parts.resize(most);
  std::array<double, most> begin{};
  for (std::size_t i = 1; i < most; ++i) {
    const Value before = parts[i - 1];
    begin[i] = begin[i - 1] + (before ? static_cast<double>(graph.type(before).dims[0]) : 0.0);
  }
  const std::vector<Attribute> attributes = {{"row_b", begin[1]}, {"row_c", begin[2]}, {"row_d", begin[3]}};
  const Value y = graph.scratch(TensorType(graph.type(matrices[0]).dtype, {rows, width}), "packed weights");
  std::vector<Value> arguments = parts;
  arguments.push_back(y);
  graph.call("concat_rows_fwd", std::move(arguments), attributes);
  tape.keep_gradient_in(y, MLG_F32);
  tape.record({y}, parts, [=](Backward& b) {
    std::vector<Value> gradients = {b.of(y)};
    for (const Value part : parts) {
      const Backward::Target target = b.into(part);
      if (target.value && target.accumulate == 0) throw std::logic_error("concat_rows: a computed matrix");
      gradients.push_back(target.value);
    }
    b.graph().call("concat_rows_bwd", std::move(gradients), attributes);
  });
  return y;
}

}  // namespace mulligan::ops
