// Each query sees the keys up to its own position in its segment.
const Formulas<shapes::AttentionForward, shapes::AttentionBidirectionalForward,
               shapes::AttentionStableForward>
    attention([](const ReferenceCall& c, auto f) -> ReferenceResults {
      const bool causal = c.call->kernel != "attention_bidirectional_fwd";
      const Numbers q = c[f.q], k = c[f.k], v = c[f.v], boundaries = c[f.cu_seqlens];
      const std::int64_t heads = c.dim(f.q, 1), kv_heads = c.dim(f.k, 1), width = c.dim(f.q, 2);
      const double scale = c.attribute("softmax_scale");
      Numbers out(q.size()), lse(index(c.dim(f.q, 0) * heads));
      for (std::size_t segment = 0; segment + 1 < boundaries.size(); ++segment) {
        const auto begin = static_cast<std::int64_t>(boundaries[segment]);
        const auto end = static_cast<std::int64_t>(boundaries[segment + 1]);
        for (std::int64_t t = begin; t < end; ++t) {
          for (std::int64_t h = 0; h < heads; ++h) {
            const std::int64_t g = h / (heads / kv_heads);
            const double* query = q.data() + (t * heads + h) * width;
            const std::int64_t keys_end = causal ? t + 1 : end;
            Numbers scores;
            for (std::int64_t j = begin; j < keys_end; ++j) {
              const double* key = k.data() + (j * kv_heads + g) * width;
              double dot = 0;
              for (std::int64_t i = 0; i < width; ++i) dot += query[i] * key[i];
              scores.push_back(scale * dot);
            }
            const double most = *std::ranges::max_element(scores);
            double sum = 0;
            for (double& score : scores) sum += score = std::exp(score - most);
            for (std::int64_t j = begin; j < keys_end; ++j) {
              const double* value = v.data() + (j * kv_heads + g) * width;
              for (std::int64_t i = 0; i < width; ++i)
                out[index((t * heads + h) * width + i)] += scores[index(j - begin)] / sum * value[i];
            }
            lse[index(t * heads + h)] = most + std::log(sum);
          }
        }
      }
      return {{f.o, out}, {f.lse, lse}};
    });
