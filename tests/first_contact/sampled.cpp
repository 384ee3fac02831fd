#include "tests/first_contact/sampled.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace mulligan::first_contact {
namespace {

constexpr std::int64_t kRows = 24, kColumns = 24;

// Up to `most` different numbers below `count`, rising: the first, the last, and others in between, drawn.
std::vector<std::int64_t> some_of(std::int64_t count, std::int64_t most, std::uint64_t seed) {
  std::set<std::int64_t> chosen = {0, count - 1};
  std::mt19937_64 random(seed);
  for (std::int64_t tries = 0;
       static_cast<std::int64_t>(chosen.size()) < std::min(most, count) && tries < 8 * most; ++tries) {
    chosen.insert(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
  }
  return {chosen.begin(), chosen.end()};
}

// Row `row` of op(matrix), [rows, inner] or, transposed, [inner, rows], from element `first` on.
std::vector<double> line_of(const HostTensor& matrix, std::int64_t first, std::int64_t row, std::int64_t rows,
                            std::int64_t inner, bool transposed) {
  std::vector<double> line(static_cast<std::size_t>(inner));
  for (std::int64_t i = 0; i < inner; ++i)
    line[static_cast<std::size_t>(i)] = matrix[first + (transposed ? i * rows + row : row * inner + i)];
  return line;
}

using Numbers = std::vector<double>;

// Where the rows of one token and head lie.
struct Heads {
  std::int64_t query, key, width;
  explicit Heads(const AttentionTensors& t)
      : query(t.q.type.dims[1]), key(t.k.type.dims[1]), width(t.q.type.dims[2]) {}
  std::int64_t of_query(std::int64_t token, std::int64_t head) const {
    return (token * query + head) * width;
  }
  std::int64_t of_key(std::int64_t token, std::int64_t head) const { return (token * key + head) * width; }
  std::int64_t group() const { return query / key; }
};

double dot(const HostTensor& a, std::int64_t at_a, const HostTensor& b, std::int64_t at_b,
           std::int64_t width) {
  double sum = 0;
  for (std::int64_t j = 0; j < width; ++j) sum += a[at_a + j] * b[at_b + j];
  return sum;
}

// The segment [begin, end) of a token.
std::pair<std::int64_t, std::int64_t> segment_of(const HostTensor& boundaries, std::int64_t token) {
  std::int64_t low = 0, high = boundaries.type.elements() - 1;  // cu[low] <= token < cu[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (boundaries[middle] <= static_cast<double>(token) ? low : high) = middle;
  }
  return {static_cast<std::int64_t>(boundaries[low]), static_cast<std::int64_t>(boundaries[high])};
}

void add_row(Agreement& agreement, const HostTensor& ours, const HostTensor& before, std::int64_t at,
             const Numbers& expected) {
  for (std::size_t j = 0; j < expected.size(); ++j) {
    const auto place = at + static_cast<std::int64_t>(j);
    agreement.add(ours[place], expected[j] + (before.bytes ? before[place] : 0.0));
  }
}

// The weight of a key for a query, from the query's lse.
double weight(const AttentionTensors& t, const Heads& heads, std::int64_t query, std::int64_t head,
              std::int64_t key) {
  const double score = t.scale * dot(t.q, heads.of_query(query, head), t.k,
                                     heads.of_key(key, head / heads.group()), heads.width);
  return std::exp(score - t.lse[query * heads.query + head]);
}

// The gradient of the score of a query and a key, before the scale.
double score_gradient(const AttentionTensors& t, const HostTensor& d_o, const Heads& heads,
                      std::int64_t query, std::int64_t head, std::int64_t key) {
  const std::int64_t at = heads.of_query(query, head);
  const double delta = dot(d_o, at, t.o, at, heads.width);
  return weight(t, heads, query, head, key) *
         (dot(d_o, at, t.v, heads.of_key(key, head / heads.group()), heads.width) - delta);
}

// At most 48 tokens, all heads of each: the first, a middle and the last token of segments, the first and the last
// segment among them.
std::vector<std::int64_t> sampled_tokens(const HostTensor& boundaries) {
  std::vector<std::pair<std::int64_t, std::int64_t>> segments;  // that are not empty
  for (std::int64_t i = 0; i + 1 < boundaries.type.elements(); ++i) {
    if (boundaries[i + 1] > boundaries[i])
      segments.emplace_back(static_cast<std::int64_t>(boundaries[i]),
                            static_cast<std::int64_t>(boundaries[i + 1]));
  }
  std::vector<std::int64_t> tokens;
  for (const std::int64_t i : some_of(static_cast<std::int64_t>(segments.size()), 16, 4)) {
    const auto [begin, end] = segments[static_cast<std::size_t>(i)];
    for (const std::int64_t token : {begin, (begin + end) / 2, end - 1}) {
      if (tokens.empty() || tokens.back() < token) tokens.push_back(token);
    }
  }
  return tokens;
}

}  // namespace

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

ForwardAgreement sampled_forward(const AttentionTensors& t) {
  const Heads heads(t);
  ForwardAgreement agreement;
  for (const std::int64_t token : sampled_tokens(t.boundaries)) {
    const std::int64_t begin = segment_of(t.boundaries, token).first;
    for (std::int64_t head = 0; head < heads.query; ++head) {
      Numbers scores;
      for (std::int64_t key = begin; key <= token; ++key)
        scores.push_back(t.scale * dot(t.q, heads.of_query(token, head), t.k,
                                       heads.of_key(key, head / heads.group()), heads.width));
      const double most = *std::ranges::max_element(scores);
      double sum = 0;
      for (const double score : scores) sum += std::exp(score - most);
      Numbers row(static_cast<std::size_t>(heads.width));
      for (std::int64_t key = begin; key <= token; ++key) {
        const double share = std::exp(scores[static_cast<std::size_t>(key - begin)] - most) / sum;
        for (std::size_t j = 0; j < row.size(); ++j)
          row[j] += share * t.v[heads.of_key(key, head / heads.group()) + static_cast<std::int64_t>(j)];
      }
      add_row(agreement.o, t.o, {}, heads.of_query(token, head), row);
      agreement.lse.add(t.lse[token * heads.query + head], most + std::log(sum));
    }
  }
  return agreement;
}

BackwardAgreement sampled_backward(const AttentionTensors& t, const AttentionGradients& g) {
  const Heads heads(t);
  BackwardAgreement agreement;
  for (const std::int64_t token : sampled_tokens(t.boundaries)) {
    const auto [begin, end] = segment_of(t.boundaries, token);
    for (std::int64_t head = 0; head < heads.query; ++head) {  // as a query
      Numbers row(static_cast<std::size_t>(heads.width));
      for (std::int64_t key = begin; key <= token; ++key) {
        const double gradient = t.scale * score_gradient(t, g.d_o, heads, token, head, key);
        for (std::size_t j = 0; j < row.size(); ++j)
          row[j] += gradient * t.k[heads.of_key(key, head / heads.group()) + static_cast<std::int64_t>(j)];
      }
      add_row(agreement.dq, g.dq, g.before_dq, heads.of_query(token, head), row);
    }
    for (std::int64_t head = 0; head < heads.key; ++head) {  // as a key
      Numbers row_k(static_cast<std::size_t>(heads.width)), row_v(row_k);
      for (std::int64_t query = token; query < end; ++query) {
        for (std::int64_t by = head * heads.group(); by < (head + 1) * heads.group(); ++by) {
          const double gradient = t.scale * score_gradient(t, g.d_o, heads, query, by, token);
          const double share = weight(t, heads, query, by, token);
          for (std::size_t j = 0; j < row_k.size(); ++j) {
            const std::int64_t at = heads.of_query(query, by) + static_cast<std::int64_t>(j);
            row_k[j] += gradient * t.q[at];
            row_v[j] += share * g.d_o[at];
          }
        }
      }
      add_row(agreement.dk, g.dk, g.before_dk, heads.of_key(token, head), row_k);
      add_row(agreement.dv, g.dv, g.before_dv, heads.of_key(token, head), row_v);
    }
  }
  return agreement;
}

}  // namespace mulligan::first_contact
