// residual_chain: what stands between two blocks, in one pass over memory. x, a, skip, x0 [T,d]; s, weight w,
// gate [d]; mix [2,d]:
//   sum = x + s a (without s x + a),  merged = k sum + (1-k) w skip,  y = mix0 merged + mix1 x0,  n = scale norm(y)
// with k = sigmoid(gate); without gate merged = sum + w skip; without weight w = 0; without skip it is sum.
//   g = dy + norm'(dn):  with r = 1 / sqrt(mean(y^2) + eps):  g = dy + scale r (dn - y r^2 mean(dn y))
//   dx0 (+)= mix1 g,  dmix += (sum g merged, sum g x0),  m = dmerged + mix0 g
//   dskip (+)= (1-k) w m,  dw += (1-k) sum(m skip),  dgate += k (1-k) sum(m (sum - w skip))
//   t = dsum + k m (without skip + (1-k) w m),  dx (+)= t,  da (+)= s t,  ds += sum t a   (sums over tokens)
//
// What does not cross memory is not rounded: in bf16 the results are a little nearer to the formula than
// those of the kernels that this one stands for (scaled_add_norm, skip_merge, residual_mix_norm).
// Determinism: rows are independent; sums go through partial sums over fixed pieces of tokens.
#include "kernels/residual_chain/signature.h"
#include "plugins/backends/cpu/math/merge_columns.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::residual_chain {
namespace {

using Forward = shapes::ResidualChainForward;
using Backward = shapes::ResidualChainBackward;

MergeColumns columns_of(const Launch& launch, float* workspace, std::int64_t width) {
  return MergeColumns(launch.data<const float>(Forward::weight), launch.data<const float>(Forward::gate),
                      workspace, width);
}

// Room for the intermediate results of a row; each piece of the rows has its own.
std::int64_t row_floats(std::int64_t width) {
  return 3 * aligned_floats(width);
}

// The results of the forward pass for one row.
template <typename T>
struct Row {
  const T *x, *a, *skip, *x0;
  float *sum, *merged, *y;

  // Row `row` of the arguments; the results in `room`, row_floats(width) floats.
  Row(const Launch& launch, std::int64_t row, std::int64_t width, float* room)
      : sum(room), merged(room + aligned_floats(width)), y(room + 2 * aligned_floats(width)) {
    const auto input = [&](std::uint32_t argument) { return row_of<const T>(launch, argument, row, width); };
    x = input(Forward::x), a = input(Forward::a), skip = input(Forward::skip), x0 = input(Forward::x0);
  }

  void compute(const float* s, const float* mix, const MergeColumns& columns, std::int64_t width) {
    const T *x = this->x, *a = this->a, *skip = this->skip, *x0 = this->x0;
    const float *sum = this->sum, *of_sum = columns.of_sum, *of_skip = columns.of_skip;
    if (s) {
      fill_row(this->sum, width, [=](std::int64_t j) { return float(x[j]) + s[j] * float(a[j]); });
    } else {
      fill_row(this->sum, width, [=](std::int64_t j) { return float(x[j]) + float(a[j]); });
    }
    if (of_sum && skip) {
      fill_row(merged, width,
               [=](std::int64_t j) { return of_sum[j] * sum[j] + of_skip[j] * float(skip[j]); });
    } else if (of_sum) {
      fill_row(merged, width, [=](std::int64_t j) { return of_sum[j] * sum[j] + of_skip[j] * sum[j]; });
    } else {
      merged = this->sum;
    }
    const float* merged = this->merged;
    fill_row(y, width, [=](std::int64_t j) { return mix[j] * merged[j] + mix[width + j] * float(x0[j]); });
  }
};

struct RunForward : Forward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    const std::int64_t width = call.dim(x, 1);
    const std::int64_t floats =
        MergeColumns::floats(width) + Pieces(call.dim(x, 0)).count * row_floats(width);
    return static_cast<std::size_t>(floats) * sizeof(float);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const auto scale = launch.number(Forward::scale), eps = launch.number(Forward::eps);
    const std::int64_t width = launch.dim(Forward::x, 1);
    const float *s = launch.data<const float>(Forward::s), *mix = launch.data<const float>(Forward::mix);
    const MergeColumns columns = columns_of(launch, launch.workspace<float>(), width);
    float* rooms = launch.workspace<float>() + MergeColumns::floats(width);
    const Pieces pieces(launch.dim(Forward::x, 0));
    const auto run_row = [&](std::int64_t at, float* room) {
      Row<T> row(launch, at, width, room);
      const auto output = [&](std::uint32_t argument) { return row_of<T>(launch, argument, at, width); };
      row.compute(s, mix, columns, width);
      const auto keep = [&](std::uint32_t argument, const float* values) {
        if (T* to = output(argument)) fill_row(to, width, [=](std::int64_t j) { return values[j]; });
      };
      keep(Forward::sum, row.sum);
      keep(Forward::merged, row.merged);
      keep(Forward::y, row.y);
      const float* y = row.y;
      const float squares = lane_sum(width, [=](std::int64_t j) { return y[j] * y[j]; });
      const float factor = scale * reciprocal_rms(squares, width, eps);
      fill_row(output(Forward::n), width, [=](std::int64_t j) { return factor * y[j]; });
    };
    launch.for_each(pieces.count, 1, [&](std::int64_t piece) {
      for (std::int64_t at = pieces.begin(piece); at < pieces.end(piece); ++at)
        run_row(at, rooms + piece * row_floats(width));
    });
  }
};

// Places of the sums in a row of partial sums.
struct Sums {
  std::int64_t s = 0, mix, skip, gate, width;  // gate: of m (sum - w skip)
  explicit Sums(std::int64_t d) : mix(d), skip(3 * d), gate(4 * d), width(5 * d) {}
};

struct BackwardRoom {
  std::int64_t columns, rows, partials, of_gate, floats;
  BackwardRoom(std::int64_t tokens, std::int64_t width)
      : columns(0),
        rows(MergeColumns::floats(width)),
        partials(rows + Pieces(tokens).count * row_floats(width)),
        of_gate(partials + aligned_floats(Pieces(tokens).count * Sums(width).width)),
        floats(of_gate + 2 * aligned_floats(width)) {}
};

// One token's gradients of activations; adds its part of the parameters' gradients to `partial` unless that
// is null.
template <typename T>
void backward_row(const Launch& launch, const MergeColumns& columns, float* partial, std::int64_t at,
                  float* room) {
  const std::int64_t width = launch.dim(Backward::x, 1);
  const auto scale = launch.number(Backward::scale), eps = launch.number(Backward::eps);
  const float *s = launch.data<const float>(Backward::s), *mix = launch.data<const float>(Backward::mix);
  const float* weight = launch.data<const float>(Backward::weight);
  const float *of_sum = columns.of_sum, *of_skip = columns.of_skip;
  const auto input = [&](std::uint32_t argument) { return row_of<const T>(launch, argument, at, width); };
  const auto output = [&](std::uint32_t argument) { return row_of<T>(launch, argument, at, width); };
  const auto accumulates = [&](std::uint32_t attribute) { return launch.flag(attribute); };
  Row<T> row(launch, at, width, room);
  row.compute(s, mix, columns, width);
  const T *a = row.a, *skip = row.skip, *x0 = row.x0;
  const float *sum = row.sum, *merged = row.merged, *y = row.y;
  const T *dsum = input(Backward::dsum), *dmerged = input(Backward::dmerged), *dy = input(Backward::dy),
          *dn = input(Backward::dn);
  T *dx = output(Backward::dx), *da = output(Backward::da), *dskip = output(Backward::dskip),
    *dx0 = output(Backward::dx0);
  const bool add_x = accumulates(Backward::accumulate_dx), add_a = accumulates(Backward::accumulate_da),
             add_skip = accumulates(Backward::accumulate_dskip),
             add_x0 = accumulates(Backward::accumulate_dx0);
  const Sums places(width);
  const auto of_y = [=](std::int64_t j) { return y[j]; };
  const NormGradient norm(width, scale, eps, dn, of_y);
  for_blocks(width, [=](std::int64_t column, auto count) {
    alignas(64) float g_block[kBlock], m_block[kBlock], t_block[kBlock];
    float *g = g_block, *m = m_block, *t = t_block;
    norm.fill(g, column, count, dy, dn, of_y);
    const float *mix0 = mix + column, *mix1 = mix + width + column;
    if (dmerged) {
      fill_row(m, count, [=](std::int64_t i) { return float(dmerged[column + i]) + mix0[i] * g[i]; });
    } else {
      fill_row(m, count, [=](std::int64_t i) { return mix0[i] * g[i]; });
    }
    const float *keep = of_sum ? of_sum + column : nullptr, *take = of_sum ? of_skip + column : nullptr;
    if (of_sum && dsum) {
      fill_row(t, count, [=](std::int64_t i) { return float(dsum[column + i]) + keep[i] * m[i]; });
    } else if (of_sum) {
      fill_row(t, count, [=](std::int64_t i) { return keep[i] * m[i]; });
    } else if (dsum) {
      fill_row(t, count, [=](std::int64_t i) { return float(dsum[column + i]) + m[i]; });
    } else {
      t = m;
    }
    if (of_sum && !skip) write_row(t, count, true, [=](std::int64_t i) { return take[i] * m[i]; });
    if (dx0) write_row(dx0 + column, count, add_x0, [=](std::int64_t i) { return mix1[i] * g[i]; });
    if (dskip && of_sum) {
      write_row(dskip + column, count, add_skip, [=](std::int64_t i) { return take[i] * m[i]; });
    } else if (dskip) {
      write_row(dskip + column, count, add_skip, [](std::int64_t) { return 0.0f; });
    }
    if (dx) write_row(dx + column, count, add_x, [=](std::int64_t i) { return t[i]; });
    const float* of_a = s ? s + column : nullptr;
    if (da && s) {
      write_row(da + column, count, add_a, [=](std::int64_t i) { return of_a[i] * t[i]; });
    } else if (da) {
      write_row(da + column, count, add_a, [=](std::int64_t i) { return t[i]; });
    }
    if (!partial) return;
    write_row(partial + places.s + column, count, true,
              [=](std::int64_t i) { return t[i] * float(a[column + i]); });
    write_row(partial + places.mix + column, count, true,
              [=](std::int64_t i) { return g[i] * merged[column + i]; });
    write_row(partial + places.mix + width + column, count, true,
              [=](std::int64_t i) { return g[i] * float(x0[column + i]); });
    if (!of_sum) return;
    // The skip, which may be the sum, and w of it.
    alignas(64) float skip_block[kBlock];
    float* other = skip_block;
    if (skip) {
      fill_row(other, count, [=](std::int64_t i) { return float(skip[column + i]); });
    } else {
      fill_row(other, count, [=](std::int64_t i) { return sum[column + i]; });
    }
    write_row(partial + places.skip + column, count, true, [=](std::int64_t i) { return m[i] * other[i]; });
    if (weight) {
      write_row(partial + places.gate + column, count, true,
                [=](std::int64_t i) { return m[i] * (sum[column + i] - weight[column + i] * other[i]); });
    } else {
      write_row(partial + places.gate + column, count, true,
                [=](std::int64_t i) { return m[i] * sum[column + i]; });
    }
  });
}

struct RunBackward : Backward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return static_cast<std::size_t>(BackwardRoom(call.dim(x, 0), call.dim(x, 1)).floats) * sizeof(float);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t tokens = launch.dim(Backward::x, 0), width = launch.dim(Backward::x, 1);
    const BackwardRoom room(tokens, width);
    const Sums places(width);
    float* workspace = launch.workspace<float>();
    const MergeColumns columns = columns_of(launch, workspace + room.columns, width);
    const Pieces pieces(tokens);
    float *rows = workspace + room.rows, *partials = workspace + room.partials;
    float *ds = launch.data<float>(Backward::ds), *dmix = launch.data<float>(Backward::dmix),
          *dweight = launch.data<float>(Backward::dweight), *dgate = launch.data<float>(Backward::dgate);
    const bool wanted = ds || dmix || dweight || dgate;
    sum_pieces(launch, tokens, places.width, partials, wanted,
               [&](float* partial, std::int64_t begin, std::int64_t end) {
                 float* own = rows + begin / pieces.length * row_floats(width);
                 for (std::int64_t at = begin; at < end; ++at)
                   backward_row<T>(launch, columns, partial, at, own);
               });
    add_pieces(launch, tokens, places.width, partials, places.s, width, ds);
    add_pieces(launch, tokens, places.width, partials, places.mix, 2 * width, dmix);
    if (!columns.of_sum) return;
    float *of_skip = workspace + room.of_gate, *of_gate = of_skip + aligned_floats(width);
    std::fill_n(of_skip, 2 * aligned_floats(width), 0.0f);
    add_pieces(launch, tokens, places.width, partials, places.skip, width, dweight ? of_skip : nullptr);
    add_pieces(launch, tokens, places.width, partials, places.gate, width, dgate ? of_gate : nullptr);
    columns.add_gradients(launch.data<const float>(Backward::gate), width, of_skip, of_gate, dweight, dgate);
  }
};

const Register registered[] = {sdk::cpu_kernel<RunForward>(), sdk::cpu_kernel<RunBackward>()};

}  // namespace
}  // namespace mulligan::cpu::residual_chain
