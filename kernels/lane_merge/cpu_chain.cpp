// lane_chain: what stands between two blocks of two lanes. lane_mean_norm: what follows the last block. Each is one pass
// over memory. lane0, lane1, a, m, skip, x0 [T,d]; attn_scale, mlp_scale, weight w, gate
// [d]; rho [2]; post [2,2]; mix [2,d]; A = attn_scale a, M = mlp_scale m:
//   out0 = rho0 lane0 + post[0,0] A + post[1,0] M,   out1 = rho1 lane1 + post[0,1] A + post[1,1] M
//   merged = k out0 + (1-k) w skip  with k = sigmoid(gate); without gate out0 + w skip; w or skip absent: zero
//   lane_chain:      y0 = mix0 merged + mix1 x0,  n0 = scale norm(y0),  n1 = scale norm(out1)
//   lane_mean_norm:  y0 = (out0 + out1) / 2,  n = scale norm(y0)
// Backward, with norm'(dn) = scale r (dn - y r^2 mean(dn y)),  r = 1 / sqrt(mean(y^2) + eps):
//   lane_chain:      g = norm'(dn0),  c = dmerged + mix0 g,  g1 = dout1 + norm'(dn1),  dx0 (+)= mix1 g,
//                    dmix += (sum g merged, sum g x0)  (over tokens)
//   lane_mean_norm:  c = g1 = norm'(dn) / 2
//   dskip (+)= (1-k) w c,  dw += (1-k) sum(c skip),  dgate += k (1-k) sum(c (out0 - w skip)),  g0 = k c
// and from g0, g1 what lane_merge.cpp makes of dout0, dout1.
//
// What does not cross memory is not rounded: in bf16 the results are a little nearer to the formula than
// those of the kernels that these stand for (lane_merge, skip_merge, residual_mix_norm, rms_norm, axpby).
// Determinism: rows are independent; sums go through partial sums over fixed pieces of tokens.
#include "kernels/lane_merge/cpu_chain_row.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::lane_chain {
namespace {

using ChainForward = shapes::LaneChainForward;
using ChainBackward = shapes::LaneChainBackward;
using MeanForward = shapes::LaneMeanNormForward;
using MeanBackward = shapes::LaneMeanNormBackward;

// Floats of workspace that both passes need: columns, and a room for a row of each piece.
struct Rooms {
  std::int64_t columns = 0, rows, floats;
  Rooms(std::int64_t tokens, std::int64_t width)
      : rows(MergeColumns::floats(width)),
        floats(rows + Pieces(tokens).count * LaneRow<float>::floats(width)) {}
};

template <typename Shape>
struct Forward : Shape {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    const Rooms rooms(call.dim(Shape::lane0, 0), call.dim(Shape::lane0, 1));
    return static_cast<std::size_t>(rooms.floats) * sizeof(float);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t tokens = launch.dim(Shape::lane0, 0), width = launch.dim(Shape::lane0, 1);
    const Rooms rooms(tokens, width);
    float* workspace = launch.workspace<float>();
    const LaneParameters p = LaneParameters::of(launch, Shape());
    const MergeColumns columns(p.weight, p.gate, workspace + rooms.columns, width);
    const Pieces pieces(tokens);
    launch.for_each(pieces.count, 1, [&](std::int64_t piece) {
      float* room = workspace + rooms.rows + piece * LaneRow<T>::floats(width);
      for (std::int64_t at = pieces.begin(piece); at < pieces.end(piece); ++at) {
        LaneRow<T> row(launch, Shape(), at, width, room);
        row.compute(p, columns, width);
        write_results(launch, row, at, width);
      }
    });
  }

 private:
  template <typename T>
  static void write_results(const Launch& launch, const LaneRow<T>& row, std::int64_t at,
                            std::int64_t width) {
    const auto scale = launch.number(Shape::scale), eps = launch.number(Shape::eps);
    const auto keep = [&](std::uint32_t argument, const float* values) {
      fill_row(launch.data<T>(argument) + at * width, width, [=](std::int64_t j) { return values[j]; });
    };
    const auto norm = [&](std::uint32_t argument, const float* y) {
      const float squares = lane_sum(width, [=](std::int64_t j) { return y[j] * y[j]; });
      const float factor = scale * reciprocal_rms(squares, width, eps);
      fill_row(launch.data<T>(argument) + at * width, width, [=](std::int64_t j) { return factor * y[j]; });
    };
    if constexpr (Shape::mixes) {
      keep(Shape::merged, row.merged);
      keep(Shape::out1, row.out1);
      norm(Shape::n0, row.y0);
      norm(Shape::n1, row.out1);
    } else {
      norm(Shape::n, row.y0);
    }
  }
};

// Places of the sums in a row of partial sums.
struct Sums {
  std::int64_t attn = 0, mlp, rho, post, mix, skip, gate, width;  // gate: of c (out0 - w skip)
  explicit Sums(std::int64_t d)
      : mlp(d),
        rho(2 * d),
        post(2 * d + 2),
        mix(2 * d + 6),
        skip(mix + 2 * d),
        gate(skip + d),
        width(gate + d) {}
};

// A row of an activation's gradient. Null: not needed.
template <typename T>
struct Target {
  T* row = nullptr;
  bool accumulate = false;

  template <typename Value>
  [[gnu::always_inline]] void write(std::int64_t column, auto count, Value&& value) const {
    if (row) write_row(row + column, count, accumulate, value);
  }
};

// A row of what the backward pass is given and of what it makes.
template <typename T>
struct Gradients {
  const T *dmerged = nullptr, *dout1 = nullptr, *dn0 = nullptr, *dn1 = nullptr;
  Target<T> lane0, lane1, a, m, skip, x0;

  template <typename Shape>
  Gradients(const Launch& launch, Shape, std::int64_t at, std::int64_t width) {
    const auto input = [&](std::uint32_t argument) { return row_of<const T>(launch, argument, at, width); };
    const auto target = [&](std::uint32_t argument, std::uint32_t flag) {
      return Target<T>{row_of<T>(launch, argument, at, width), launch.flag(flag)};
    };
    lane0 = target(Shape::dlane0, Shape::accumulate_dlane0);
    lane1 = target(Shape::dlane1, Shape::accumulate_dlane1);
    a = target(Shape::da, Shape::accumulate_da);
    m = target(Shape::dm, Shape::accumulate_dm);
    if constexpr (Shape::mixes) {
      dmerged = input(Shape::dmerged), dout1 = input(Shape::dout1);
      dn0 = input(Shape::dn0), dn1 = input(Shape::dn1);
      skip = target(Shape::dskip, Shape::accumulate_dskip);
      x0 = target(Shape::dx0, Shape::accumulate_dx0);
    } else {
      dn0 = input(Shape::dn);
    }
  }
};

// One token's gradients of activations; adds its part of the parameters' gradients to `partial` unless that
// is null.
template <typename T>
void backward_row(const LaneRow<T>& row, const Gradients<T>& d, const LaneParameters& p,
                  const MergeColumns& columns, float scale, float eps, float* partial, std::int64_t width) {
  const T *lane0 = row.lane0, *lane1 = row.lane1, *a = row.a, *m = row.m, *skip = row.skip, *x0 = row.x0;
  const float *out0 = row.out0, *out1 = row.out1, *merged = row.merged, *y0 = row.y0;
  const T *dmerged = d.dmerged, *dout1 = d.dout1, *dn0 = d.dn0, *dn1 = d.dn1;
  const bool mixes = p.mix != nullptr;
  const NormGradient norm0(width, scale, eps, dn0, [=](std::int64_t j) { return y0[j]; }),
      norm1(width, scale, eps, dn1, [=](std::int64_t j) { return out1[j]; });
  const float factor0 = norm0.factor, along0 = norm0.along, factor1 = norm1.factor, along1 = norm1.along;
  const float rho0 = p.rho[0], rho1 = p.rho[1];
  const float post00 = p.post[0], post01 = p.post[1], post10 = p.post[2], post11 = p.post[3];
  const Sums places(width);
  // Sums over the columns, in lanes: g0 lane0, g1 lane1, g0 A, g1 A, g0 M, g1 M (drho, dpost).
  alignas(64) float lane_storage[6][kBlock] = {};
  static_assert(kBlock == kLanes);
  auto* lanes = lane_storage;
  for_blocks(width, [&](std::int64_t column, auto count) {
    alignas(64) float storage[5][kBlock];
    float *g = storage[0], *g0 = storage[1], *g1 = storage[2], *ga = storage[3], *gm = storage[4];
    const auto add = [&](std::int64_t place, auto&& value) {
      write_row(partial + place + column, count, true, value);
    };
    fill_row(g, count, [=](std::int64_t i) {
      return dn0 ? factor0 * float(dn0[column + i]) - along0 * y0[column + i] : 0.0f;
    });
    if (mixes) {
      const float *mix0 = p.mix + column, *mix1 = p.mix + width + column;
      fill_row(g0, count, [=](std::int64_t i) {
        return (dmerged ? float(dmerged[column + i]) : 0.0f) + mix0[i] * g[i];
      });
      fill_row(g1, count, [=](std::int64_t i) {
        return (dout1 ? float(dout1[column + i]) : 0.0f) +
               (dn1 ? factor1 * float(dn1[column + i]) - along1 * out1[column + i] : 0.0f);
      });
      d.x0.write(column, count, [=](std::int64_t i) { return mix1[i] * g[i]; });
      if (partial) {
        add(places.mix, [=](std::int64_t i) { return g[i] * merged[column + i]; });
        add(places.mix + width, [=](std::int64_t i) { return g[i] * float(x0[column + i]); });
      }
    } else {
      fill_row(g0, count, [=](std::int64_t i) { return 0.5f * g[i]; });
      fill_row(g1, count, [=](std::int64_t i) { return 0.5f * g[i]; });
    }
    if (columns.of_sum) {
      const float *keep = columns.of_sum + column, *take = columns.of_skip + column;
      const float* weight = p.weight ? p.weight + column : nullptr;
      d.skip.write(column, count, [=](std::int64_t i) { return take[i] * g0[i]; });
      if (partial && skip) {
        add(places.skip, [=](std::int64_t i) { return g0[i] * float(skip[column + i]); });
      }
      if (partial) {
        add(places.gate, [=](std::int64_t i) {
          const float of_skip = weight && skip ? weight[i] * float(skip[column + i]) : 0.0f;
          return g0[i] * (out0[column + i] - of_skip);
        });
      }
      fill_row(g0, count, [=](std::int64_t i) { return keep[i] * g0[i]; });
    } else {
      d.skip.write(column, count, [](std::int64_t) { return 0.0f; });
    }
    const float *of_a = p.attn_scale + column, *of_m = p.mlp_scale + column;
    fill_row(ga, count, [=](std::int64_t i) { return post00 * g0[i] + post01 * g1[i]; });
    fill_row(gm, count, [=](std::int64_t i) { return post10 * g0[i] + post11 * g1[i]; });
    d.lane0.write(column, count, [=](std::int64_t i) { return rho0 * g0[i]; });
    d.lane1.write(column, count, [=](std::int64_t i) { return rho1 * g1[i]; });
    d.a.write(column, count, [=](std::int64_t i) { return of_a[i] * ga[i]; });
    d.m.write(column, count, [=](std::int64_t i) { return of_m[i] * gm[i]; });
    if (!partial) return;
    add(places.attn, [=](std::int64_t i) { return ga[i] * float(a[column + i]); });
    add(places.mlp, [=](std::int64_t i) { return gm[i] * float(m[column + i]); });
    const auto add_lane = [&](int sum, auto&& value) { write_row(lanes[sum], count, true, value); };
    add_lane(0, [=](std::int64_t i) { return g0[i] * float(lane0[column + i]); });
    add_lane(1, [=](std::int64_t i) { return g1[i] * float(lane1[column + i]); });
    add_lane(2, [=](std::int64_t i) { return g0[i] * (of_a[i] * float(a[column + i])); });
    add_lane(3, [=](std::int64_t i) { return g1[i] * (of_a[i] * float(a[column + i])); });
    add_lane(4, [=](std::int64_t i) { return g0[i] * (of_m[i] * float(m[column + i])); });
    add_lane(5, [=](std::int64_t i) { return g1[i] * (of_m[i] * float(m[column + i])); });
  });
  if (!partial) return;
  for (int i = 0; i < 6; ++i) partial[places.rho + i] += fold_lanes(lanes[i]);
}

template <typename Shape>
struct Backward : Shape {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return static_cast<std::size_t>(Room(call.dim(Shape::lane0, 0), call.dim(Shape::lane0, 1)).floats) *
           sizeof(float);
  }
  struct Room : Rooms {
    std::int64_t partials, of_merge;
    Room(std::int64_t tokens, std::int64_t width) : Rooms(tokens, width) {
      partials = floats;
      of_merge = partials + aligned_floats(Pieces(tokens).count * Sums(width).width);
      floats = of_merge + 2 * aligned_floats(width);
    }
  };

  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t tokens = launch.dim(Shape::lane0, 0), width = launch.dim(Shape::lane0, 1);
    const auto scale = launch.number(Shape::scale), eps = launch.number(Shape::eps);
    const Room room(tokens, width);
    const Sums places(width);
    const Pieces pieces(tokens);
    float* workspace = launch.workspace<float>();
    const LaneParameters p = LaneParameters::of(launch, Shape());
    const MergeColumns columns(p.weight, p.gate, workspace + room.columns, width);
    float* partials = workspace + room.partials;
    const auto wants = [&](auto... gradient) { return (launch.has(gradient) || ...); };
    bool wanted = wants(Shape::dattn_scale, Shape::dmlp_scale, Shape::drho, Shape::dpost);
    if constexpr (Shape::mixes) wanted = wanted || wants(Shape::dmix, Shape::dweight, Shape::dgate);
    sum_pieces(launch, tokens, places.width, partials, wanted,
               [&](float* partial, std::int64_t begin, std::int64_t end) {
                 float* own = workspace + room.rows + begin / pieces.length * LaneRow<T>::floats(width);
                 for (std::int64_t at = begin; at < end; ++at) {
                   LaneRow<T> row(launch, Shape(), at, width, own);
                   row.compute(p, columns, width);
                   backward_row<T>(row, Gradients<T>(launch, Shape(), at, width), p, columns, scale, eps,
                                   partial, width);
                 }
               });
    const auto add = [&](std::int64_t place, std::int64_t count, float* to) {
      add_pieces(launch, tokens, places.width, partials, place, count, to);
    };
    add(places.attn, width, launch.data<float>(Shape::dattn_scale));
    add(places.mlp, width, launch.data<float>(Shape::dmlp_scale));
    add(places.rho, 2, launch.data<float>(Shape::drho));
    add(places.post, 4, launch.data<float>(Shape::dpost));
    if constexpr (Shape::mixes) {
      add(places.mix, 2 * width, launch.data<float>(Shape::dmix));
      float *dweight = launch.data<float>(Shape::dweight), *dgate = launch.data<float>(Shape::dgate);
      if (!columns.of_sum) return;
      float *of_skip = workspace + room.of_merge, *of_gate = of_skip + aligned_floats(width);
      std::fill_n(of_skip, 2 * aligned_floats(width), 0.0f);
      add(places.skip, width, dweight ? of_skip : nullptr);
      add(places.gate, width, dgate ? of_gate : nullptr);
      columns.add_gradients(p.gate, width, of_skip, of_gate, dweight, dgate);
    }
  }
};

const Register registered[] = {
    sdk::cpu_kernel<Forward<ChainForward>>(), sdk::cpu_kernel<Forward<MeanForward>>(),
    sdk::cpu_kernel<Backward<ChainBackward>>(), sdk::cpu_kernel<Backward<MeanBackward>>()};

}  // namespace
}  // namespace mulligan::cpu::lane_chain
