#include "tests/first_contact/sampled_matmul.h"

#include <algorithm>
#include <random>
#include <set>

namespace mulligan::first_contact {
namespace {

constexpr std::int64_t kRows = 24, kColumns = 24;

// Row `row` of op(matrix), [rows, inner] or, transposed, [inner, rows], from element `first` on.
std::vector<double> line_of(const HostTensor& matrix, std::int64_t first, std::int64_t row, std::int64_t rows,
                            std::int64_t inner, bool transposed) {
  std::vector<double> line(static_cast<std::size_t>(inner));
  for (std::int64_t i = 0; i < inner; ++i)
    line[static_cast<std::size_t>(i)] = matrix[first + (transposed ? i * rows + row : row * inner + i)];
  return line;
}

}  // namespace

std::vector<std::int64_t> some_of(std::int64_t count, std::int64_t most, std::uint64_t seed) {
  std::set<std::int64_t> chosen = {0, count - 1};
  std::mt19937_64 random(seed);
  for (std::int64_t tries = 0;
       static_cast<std::int64_t>(chosen.size()) < std::min(most, count) && tries < 8 * most; ++tries) {
    chosen.insert(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
  }
  return {chosen.begin(), chosen.end()};
}

Agreement sampled_matmul(const MatmulTensors& p) {
  const bool batched = p.a.type.rank == 3;
  const std::int64_t batch = batched ? p.c.type.dims[0] : 1;
  const std::int64_t m = p.c.type.dims[batched ? 1 : 0], n = p.c.type.dims[batched ? 2 : 1];
  const std::int64_t k = p.a.type.elements() / (batch * m);
  Agreement agreement;
  for (const std::int64_t item : some_of(batch, 2, 1)) {
    const std::vector<std::int64_t> rows = some_of(m, kRows, 2), columns = some_of(n, kColumns, 3);
    std::vector<std::vector<double>> lines_b;
    for (const std::int64_t column : columns)
      lines_b.push_back(line_of(p.b, item * k * n, column, n, k, !p.transpose_b));
    for (const std::int64_t row : rows) {
      const std::vector<double> line_a = line_of(p.a, item * m * k, row, m, k, p.transpose_a);
      for (std::size_t column = 0; column < columns.size(); ++column) {
        double sum = 0;
        for (std::size_t i = 0; i < line_a.size(); ++i) sum += line_a[i] * lines_b[column][i];
        const std::int64_t at = (item * m + row) * n + columns[column];
        agreement.add(p.c[at], p.alpha * sum + (p.beta != 0 ? p.beta * p.term[at] : 0.0));
      }
    }
  }
  return agreement;
}

}  // namespace mulligan::first_contact
