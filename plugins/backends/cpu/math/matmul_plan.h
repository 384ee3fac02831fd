// How one matmul is cut into tiles. A function of the shape only, never of the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mulligan::cpu {

// c[batch, m, n] = a[batch, m, k] b[batch, k, n] in rows x columns x inner tiles. Measured on 2 cores with
// AVX-512 (docs/performance.md): tiles of about 256 x 512 with the whole inner dimension are as fast as one
// matmul over everything; a long inner dimension is cut as well when the output alone gives too few tiles
// to share out.
//
// `fixed_rows`: nothing but the number of tiles depends on m. Every tile has kFixedRows rows, the last one rows
// of zeros where m does not fill it, and the inner dimension is not cut. 64 rows: 3 to 10 % slower than 256 at
// n = 512, k = 512 to 8192 (32 rows: 10 to 34 %), and a single row costs what 64 do.
struct MatmulPlan {
  MatmulPlan(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, bool fixed_rows = false)
      : batch(batch), m(m), n(n), k(k) {
    tile_n = even_tile(n, kColumns);
    if (fixed_rows) {
      tile_m = kFixedRows;
      tile_k = k;
      return;
    }
    tile_m = even_tile(m, kRows);
    const std::int64_t wanted = (kEnoughTiles + tiles_of_output() - 1) / tiles_of_output();
    const std::int64_t pieces = std::clamp<std::int64_t>(k / kShortestInner, 1, wanted);
    tile_k = even_tile(k, (k + pieces - 1) / pieces);
  }

  std::int64_t count_m() const { return (m + tile_m - 1) / tile_m; }
  std::int64_t count_n() const { return (n + tile_n - 1) / tile_n; }
  std::int64_t count_k() const { return (k + tile_k - 1) / tile_k; }
  std::int64_t tiles_of_output() const { return batch * count_m() * count_n(); }

  static constexpr std::int64_t kFixedRows = 64;

  std::int64_t batch, m, n, k;
  std::int64_t tile_m, tile_n, tile_k;

 private:
  static constexpr std::int64_t kRows = 256, kColumns = 512, kEnoughTiles = 8, kShortestInner = 1024;

  // The extent of equal tiles, each at most `most`, rounded up to the vector width.
  static std::int64_t even_tile(std::int64_t extent, std::int64_t most) {
    const std::int64_t count = (extent + most - 1) / most;
    const std::int64_t tile = (extent + count - 1) / count;
    return std::min(extent, (tile + 15) / 16 * 16);
  }
};

}  // namespace mulligan::cpu
