// embedding_bwd on ids [T], dx [T, width], dtable [V, width]:  dtable[ids[t]] += dx[t], in order of t within pieces of
// kPiece tokens of a row; the row's first piece is added to the table one by one, then the sums of the others
//
// The tokens are sorted by id, digit_bits bits at a time from the lowest (radix sort; each pass keeps the
// order of equal digits, so tokens of one id stay in order of t). A pass: count_digits over chunks of tokens,
// scan_counts, move_tokens. find_rows then finds where the tokens of each row of the table lie. A group of threads
// per piece (add_pieces) and per row (add_token_rows) adds them up, so a frequent token is not one group's work alone. The
// cost is that of T tokens and of the rows that occur. A wrong id sorts after all rows and makes row 0 NaN.
// Determinism: no atomics; the pieces of a row follow from its own tokens.
#include <mulligan/cuda/rows.cuh>

MLG_CONST_INT(digit_bits)  // at most 8

constexpr int kSortWarps = 8, kWarpSteps = 4, kMostDigits = 256;
constexpr int kChunk = kSortWarps * kWarpSteps * 32;  // tokens of a block

// What a warp knows of the token that each lane holds in one step.
struct SortedToken {
  int key = 0, digit = 0;
  int rank = 0;  // among the tokens of the warp with this digit
  bool active = false;
};

// The lanes of the warp that are active and hold the same digit.
__device__ inline unsigned peers_of(const SortedToken& token) {
  unsigned peers = __ballot_sync(kWholeWarp, token.active);
  for (int bit = 0; bit < digit_bits; ++bit) {
    const bool set = (token.digit >> bit) & 1;
    const unsigned votes = __ballot_sync(kWholeWarp, set);
    peers &= set ? votes : ~votes;
  }
  return peers;
}

// Ranks the tokens of the running warp: `counts` [warps, digits] gets how many it has of each digit. The
// block's tokens are the chunk blockIdx.x of `keys`; those outside
// of [0, vocabulary) get the key `vocabulary`.
__device__ inline void rank_tokens(global<const int> keys, int tokens, int vocabulary, int shift,
                                   shared_array<int, kSortWarps * kMostDigits>& counts,
                                   SortedToken (&found)[kWarpSteps]) {
  const int digits = 1 << digit_bits, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < kSortWarps * digits; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  MLG_UNROLL
  for (int step = 0; step < kWarpSteps; ++step) {
    const int at = int(blockIdx.x) * kChunk + (warp * kWarpSteps + step) * 32 + lane;
    SortedToken& token = found[step];
    token.active = at < tokens;
    const int id = token.active ? int(keys[at]) : 0;
    token.key = id >= 0 && id < vocabulary ? id : vocabulary;
    token.digit = (token.key >> shift) & (digits - 1);
    const unsigned peers = peers_of(token), before = peers & ((1u << lane) - 1);
    const int count = counts[warp * digits + token.digit];
    token.rank = count + __popc(before);
    __syncwarp();
    if (token.active && before == 0) counts[warp * digits + token.digit] = count + __popc(peers);
    __syncwarp();
  }
  __syncthreads();
}

// totals [digits, chunks]
MLG_KERNEL(count_digits, digit_bits)
__global__ void __launch_bounds__(kSortWarps * 32)
    count_digits(global<const int> keys, global<int> totals, int tokens, int vocabulary, int shift) {
  __shared__ shared_array<int, kSortWarps * kMostDigits> counts;
  SortedToken found[kWarpSteps];
  rank_tokens(keys, tokens, vocabulary, shift, counts, found);
  const int digits = 1 << digit_bits, digit = threadIdx.x;
  if (digit >= digits) return;
  int total = 0;
  for (int warp = 0; warp < kSortWarps; ++warp) total += counts[warp * digits + digit];
  totals[digit * (long long)(gridDim.x) + blockIdx.x] = total;
}

// totals[i] = totals[0] + ... + totals[i - 1]. One block.
MLG_KERNEL(scan_counts)
__global__ void __launch_bounds__(kSortWarps * 32) scan_counts(global<int> totals, int count) {
  __shared__ shared_array<int, kSortWarps> warp_sums;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, threads = kSortWarps * 32;
  const int piece = (count + threads - 1) / threads;
  const int begin = min(count, int(threadIdx.x) * piece), end = min(count, begin + piece);
  int sum = 0;
  for (int i = begin; i < end; ++i) sum += totals[i];
  int upto = sum;  // of this and the lanes below
  MLG_UNROLL
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const int below = __shfl_up_sync(kWholeWarp, upto, lanes);
    if (lane >= lanes) upto += below;
  }
  if (lane == 31) warp_sums[warp] = upto;
  __syncthreads();
  int running = upto - sum;
  for (int other = 0; other < warp; ++other) running += warp_sums[other];
  for (int i = begin; i < end; ++i) {
    const int here = totals[i];
    totals[i] = running;
    running += here;
  }
}

// Places the tokens (`order`; null: the first pass, token i at i) by their digit.
// offsets: what scan_counts made.
MLG_KERNEL(move_tokens, digit_bits)
__global__ void __launch_bounds__(kSortWarps * 32)
    move_tokens(global<const int> keys, global<const int> order, global<const int> offsets,
                global<int> new_keys, global<int> new_order, int tokens, int vocabulary, int shift) {
  __shared__ shared_array<int, kSortWarps * kMostDigits> counts;
  SortedToken found[kWarpSteps];
  rank_tokens(keys, tokens, vocabulary, shift, counts, found);
  const int digits = 1 << digit_bits, digit = threadIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (digit < digits) {
    int place = offsets[digit * (long long)(gridDim.x) + blockIdx.x];
    for (int other = 0; other < kSortWarps; ++other) {
      const int count = counts[other * digits + digit];
      counts[other * digits + digit] = place;
      place += count;
    }
  }
  __syncthreads();
  MLG_UNROLL
  for (int step = 0; step < kWarpSteps; ++step) {
    const SortedToken& token = found[step];
    if (!token.active) continue;
    const int at = int(blockIdx.x) * kChunk + (warp * kWarpSteps + step) * 32 + lane;
    const int place = counts[warp * digits + token.digit] + token.rank;
    new_keys[place] = token.key;
    new_order[place] = order ? int(order[at]) : at;
  }
}

// starts[row] = the first place in the sorted `keys` that is not below `row`, for row in [0, rows).
MLG_KERNEL(find_rows)
__global__ void find_rows(global<const int> keys, global<int> starts, int tokens, long long rows) {
  const long long row = blockIdx.x * (long long)(blockDim.x) + threadIdx.x;
  if (row >= rows) return;
  int low = 0, high = tokens;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (keys[middle] < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  starts[row] = low;
}

constexpr int kPiece = 128;  // tokens of a row that one group adds up

// Rows that a thread loads before it adds them.
template <typename T>
constexpr int kRowsInFlight = sizeof(T) == 4 ? 4 : 16;

// Adds the rows of the tokens at the sorted places [begin, end) to `sums`, in this order.
template <typename T, int N>
__device__ inline void add_rows(const RowGroup& group, global<const int> order, global<const T> dx, int begin,
                                int end, RowValues<N>& sums) {
  const int lane = threadIdx.x % 32;
  // 32 tokens at a time, a lane each; the next ones are under way meanwhile.
  int ahead = begin + lane < end ? int(order[begin + lane]) : 0;
  for (int first = begin; first < end; first += 32) {
    const int token = ahead;
    ahead = first + 32 + lane < end ? int(order[first + 32 + lane]) : 0;
    for (int batch = 0; batch < min(32, end - first); batch += kRowsInFlight<T>) {
      int tokens_here[kRowsInFlight<T>];
      MLG_UNROLL
      for (int b = 0; b < kRowsInFlight<T>; ++b) tokens_here[b] = __shfl_sync(kWholeWarp, token, batch + b);
      for_columns<N>(group, [&](int i, int column) {
        T rows[kRowsInFlight<T>][N];
        MLG_UNROLL
        for (int b = 0; b < kRowsInFlight<T>; ++b) {
          if (first + batch + b < end) copy_in<N>(dx, (long long)(tokens_here[b]) * width + column, rows[b]);
        }
        MLG_UNROLL
        for (int b = 0; b < kRowsInFlight<T>; ++b) {
          if (first + batch + b >= end) continue;
          MLG_UNROLL
          for (int n = 0; n < N; ++n) sums.v[i][n] += to_float(rows[b][n]);
        }
      });
    }
  }
}

// partial [pieces, width]: the sum of the piece that begins at a sorted place [c kPiece, (c + 1) kPiece) is row c. There is
// at most one that is not the first of its row: kPiece tokens of the row lie before it, so the row has place c kPiece.
MLG_KERNEL(add_pieces, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    add_pieces(global<const int> keys, global<const int> order, global<const int> starts, global<const T> dx,
               global<float> partial, long long vocabulary, long long pieces) {
  RowGroup group(pieces, 1);
  if (group.row >= pieces) return;
  const int place = int(group.row) * kPiece, row = keys[place];
  if (row >= vocabulary) return;
  const int row_begin = starts[row], row_end = starts[row + 1];
  const int begin = row_begin + (place - row_begin + kPiece - 1) / kPiece * kPiece;
  if (begin == row_begin || begin >= row_end) return;
  for_slices(group, [&] {
    RowValues<N> sums;
    clear<N>(group, sums);
    add_rows<T, N>(group, order, dx, begin, min(begin + kPiece, row_end), sums);
    store_columns<N>(group, partial, group.row * width, sums);
  });
}

// starts [vocabulary + 1]
MLG_KERNEL(add_token_rows, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    add_token_rows(global<const int> order, global<const int> starts, global<const T> dx,
                   global<const float> partial, global<float> dtable, int tokens, long long vocabulary) {
  RowGroup group(vocabulary, 1);
  if (group.row >= vocabulary) return;
  const int begin = starts[group.row], end = starts[group.row + 1];
  const bool wrong = group.row == 0 && starts[vocabulary] < tokens;
  if (begin == end && !wrong) return;
  for_slices(group, [&] {
    RowValues<N> sums;
    load_columns<N>(group, dtable, group.row * width, sums);
    add_rows<T, N>(group, order, dx, begin, min(begin + kPiece, end), sums);
    for (int piece = begin + kPiece; piece < end; piece += kPiece) {
      for_columns<N>(group, [&](int i, int column) {
        float added[N];
        load<N>(partial, (long long)(piece / kPiece) * width + column, added);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) sums.v[i][n] += added[n];
      });
    }
    for_columns<N>(group, [&](int i, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        if (wrong) sums.v[i][n] = bits_to_float(0x7FC00000u);
      }
    });
    store_columns<N>(group, dtable, group.row * width, sums);
  });
}
