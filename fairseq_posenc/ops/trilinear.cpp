// Computes M3's sum_d q_id k_jd a_ijd for all pairs in one pass, whose sums stay in registers. cpp.py compiles and
// calls this file.
//
// Legend: G = B h matrices of Q queries and K keys, D head width. A table holds the vectors of L = Q+K-1 distances;
// query i and key j have entry j - i + Q-1. A vector register has W numbers (simd.h).

#include <algorithm>
#include <cstdint>

#include "simd.h"

namespace {

using Size = std::int64_t;

// The registers must hold ROWS times COLUMNS sums, COLUMNS vectors of keys and a few others.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int ROWS = 4, COLUMNS = 4;
#else
constexpr int ROWS = 2, COLUMNS = 4;
#endif

constexpr int TALL = ROWS * W, WIDE = COLUMNS * W;
constexpr int WINDOW = TALL + WIDE;  // one more than the distances in a tile of TALL queries and WIDE keys
constexpr int STEPS = WIDE / TALL;   // a tile's right neighbour has the distances of the tile STEPS above it

// Computes the sums of R queries, which are W apart, with C registers of W keys. The distances of query r and the keys
// of register c depend only on c - r, so each register of distances is used along a whole diagonal. Each number in a
// register of sums belongs to another key, so the numbers of a register are never added up.
template <int R, int C>
void sums(const float* q, Size q_step, const float* k, const float* a, Size dim, float* out, Size out_step) {
    Vector sum[R][C] = {};
    for (Size d = 0; d < dim; d++, k += WIDE, a += WINDOW) {
        Vector keys[C];
        for (int c = 0; c < C; c++) keys[c] = at(k + c * W);
        float numbers[R];
        for (int r = 0; r < R; r++) numbers[r] = q[r * q_step + d];
        for (int diagonal = 1 - R; diagonal < C; diagonal++) {
            const Vector between = at(a + (diagonal + ROWS - 1) * W);
            for (int r = 0; r < R; r++)  // all compilers unroll these bounds
                if (0 <= r + diagonal && r + diagonal < C)
                    sum[r][r + diagonal] += keys[r + diagonal] * between * numbers[r];
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) at(out + r * out_step + c * W) = sum[r][c];
}

using Sums = void (*)(const float*, Size, const float*, const float*, Size, float*, Size);
#define OF(R) {sums<R, 1>, sums<R, 2>, sums<R, 3>, sums<R, 4>}
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr Sums SUMS[ROWS][COLUMNS] = {OF(1), OF(2), OF(3), OF(4)};
#else
constexpr Sums SUMS[ROWS][COLUMNS] = {OF(1), OF(2)};
#endif
#undef OF

inline int parts(Size numbers, Size size) { return int((numbers + size - 1) / size); }

// Transposes `width` rows from `from` on, [width, D], to columns [D, width]. Missing rows become zeros.
void transpose(const float* rows, Size row_step, Size from, Size stop, int width, Size dim, float* columns) {
    for (Size start = 0; start < dim; start += W)
        for (int e = 0; e < width; e++) {
            const bool exists = from + e >= 0 && from + e < stop;
            for (Size d = start; d < std::min<Size>(start + W, dim); d++)
                columns[d * width + e] = exists ? rows[(from + e) * row_step + d] : 0.0f;
        }
}

}  // namespace

extern "C" {

// Returns how many numbers of scratch memory `trilinear` needs.
std::int64_t trilinear_scratch(Size matrices, Size queries, Size keys, Size dim, Size tables) {
    const Size across = parts(keys, WIDE), down = parts(queries, TALL);
    return (matrices * across * WIDE + tables * ((across - 1) * STEPS + down) * WINDOW) * dim;
}

// Writes the sums to out [B, h, Q, K]. `out` and table [tables, L, D] are contiguous; `tables` is 1 or h. The strides
// of q and k are those of samples, heads and rows.
void trilinear(const float* q, const Size* q_strides, const float* k, const Size* k_strides, const float* table,
            float* out, float* scratch, Size batch, Size heads, Size queries, Size keys, Size dim, Size tables,
            int threads) {
    const Size across = parts(keys, WIDE), down = parts(queries, TALL), windows = (across - 1) * STEPS + down;
    const Size length = queries + keys - 1;
    float* const packed = scratch;                                         // [G, across, D, WIDE]
    float* const around = scratch + batch * heads * across * WIDE * dim;  // [tables, windows, D, WINDOW]
#pragma omp parallel num_threads(threads)
    {
#pragma omp for nowait
        for (Size tile = 0; tile < batch * heads * across; tile++) {
            const Size matrix = tile / across;
            const float* from = k + matrix / heads * k_strides[0] + matrix % heads * k_strides[1];
            transpose(from, k_strides[2], tile % across * WIDE, keys, WIDE, dim, packed + tile * WIDE * dim);
        }
#pragma omp for
        for (Size window = 0; window < tables * windows; window++) {
            const Size first = (window % windows - down) * TALL + queries;
            const float* from = table + window / windows * length * dim;
            transpose(from, dim, first, length, WINDOW, dim, around + window * WINDOW * dim);
        }
#pragma omp for
        for (Size block = 0; block < batch * heads * down; block++) {
            const Size matrix = block / down, row = block % down, start = row * TALL;
            const Size rows = std::min<Size>(TALL, queries - start);
            const float* from = q + matrix / heads * q_strides[0] + matrix % heads * q_strides[1] + start * q_strides[2];
            const float* windows_of_head = around + (tables > 1 ? matrix % heads : 0) * windows * WINDOW * dim;
            for (Size column = 0; column < across; column++) {
                const Size columns = std::min<Size>(WIDE, keys - column * WIDE);
                float* to = out + (matrix * queries + start) * keys + column * WIDE;
                float part[TALL * WIDE];  // for whole vectors, if the last one goes beyond the end of the row
                float* tile_out = columns % W ? part : to;
                const Size step = columns % W ? WIDE : keys;
                const float* k_tile = packed + (matrix * across + column) * WIDE * dim;
                const float* window = windows_of_head + (column * STEPS - row + down - 1) * WINDOW * dim;
                for (Size r = 0; r < std::min<Size>(W, rows); r++)
                    SUMS[parts(rows - r, W) - 1][parts(columns, W) - 1](
                        from + r * q_strides[2], W * q_strides[2], k_tile, window + W - 1 - r, dim, tile_out + r * step,
                        W * step);
                if (tile_out == part)
                    for (Size r = 0; r < rows; r++) std::copy_n(part + r * WIDE, columns, to + r * keys);
            }
        }
    }
}

}  // extern "C"
