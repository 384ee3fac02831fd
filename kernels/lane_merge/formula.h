// Both lanes after a block: lane0, lane1, a, m, attn_scale, mlp_scale, rho, post.
template <typename F>
std::pair<Numbers, Numbers> merged_lanes(const ReferenceCall& c, F f) {
  const Numbers lane0 = c[f.lane0], lane1 = c[f.lane1], a = c[f.a], m = c[f.m], attn = c[f.attn_scale],
                mlp = c[f.mlp_scale], rho = c[f.rho], post = c[f.post];
  Numbers out0(lane0.size()), out1(lane0.size());
  for (std::size_t i = 0; i < lane0.size(); ++i) {
    const double x = attn[i % attn.size()] * a[i], y = mlp[i % mlp.size()] * m[i];
    out0[i] = rho[0] * lane0[i] + post[0] * x + post[2] * y;
    out1[i] = rho[1] * lane1[i] + post[1] * x + post[3] * y;
  }
  return {out0, out1};
}

const Formulas<shapes::LaneMergeForward> lane_merge([](const ReferenceCall& c, auto f) -> ReferenceResults {
  const auto [out0, out1] = merged_lanes(c, f);
  return {{f.out0, out0}, {f.out1, out1}};
});

const Formulas<shapes::LaneChainForward> lane_chain([](const ReferenceCall& c, auto f) -> ReferenceResults {
  const auto [out0, out1] = merged_lanes(c, f);
  const Numbers merged = blended(out0, optional(c, f.skip), optional(c, f.weight), optional(c, f.gate));
  const std::int64_t width = c.dim(f.lane0, 1);
  return {{f.merged, merged},
          {f.out1, out1},
          {f.n0, normed(c, mixed(merged, c[f.x0], c[f.mix]), width)},
          {f.n1, normed(c, out1, width)}};
});

const Formulas<shapes::LaneMeanNormForward> lane_mean_norm([](const ReferenceCall& c,
                                                              auto f) -> ReferenceResults {
  auto [mean, out1] = merged_lanes(c, f);
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (mean[i] + out1[i]) / 2;
  return {{f.n, normed(c, mean, c.dim(f.lane0, 1))}};
});
