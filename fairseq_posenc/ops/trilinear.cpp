// M3's sum_d q_id k_jd a_ijd of all pairs: one pass whose sums stay in registers. See cpp.py, which compiles it.
//
// Legend: G = B h matrices of Q queries and K keys, D numbers wide; a table holds the vectors of L = Q+K-1 distances,
// entry j - i + Q-1 that of query i and key j. W numbers a vector register (simd.h).

#include <algorithm>
#include <cstdint>

#include "simd.h"

namespace {

using Size = std::int64_t;

// rows times columns of sums, of the columns keys, and a few more have to fit the registers
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int ROWS = 4, COLUMNS = 4;
#else
constexpr int ROWS = 2, COLUMNS = 4;
#endif

constexpr int TALL = ROWS * W, WIDE = COLUMNS * W;
constexpr int WINDOW = TALL + WIDE;  // distances that a tile of TALL queries and WIDE keys meets, and one
constexpr int STEPS = WIDE / TALL;   // one tile to the right moves the window by so many tiles down

// Queries W apart and R vectors of keys: query r and keys c meet the distances c - r, so a vector of these serves a
// whole diagonal, and the lanes of a sum are its keys: nothing is added across.
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
            for (int r = 0; r < R; r++)  // bounds that all compilers unroll
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

// `width` rows from `from` on, [width, D], to columns [D, step]; zeros where there is no row
void transpose(const float* rows, Size row_step, Size from, Size stop, int width, Size dim, float* columns) {
    for (Size start = 0; start < dim; start += W)
        for (int e = 0; e < width; e++) {
            const bool there = from + e >= 0 && from + e < stop;
            for (Size d = start; d < std::min<Size>(start + W, dim); d++)
                columns[d * width + e] = there ? rows[(from + e) * row_step + d] : 0.0f;
        }
}

}  // namespace

extern "C" {

// How many numbers of scratch `trilinear` needs.
std::int64_t trilinear_scratch(Size matrices, Size queries, Size keys, Size dim, Size tables) {
    const Size across = parts(keys, WIDE), down = parts(queries, TALL);
    return (matrices * across * WIDE + tables * ((across - 1) * STEPS + down) * WINDOW) * dim;
}

// out [B, h, Q, K] and table [tables, L, D] contiguous, tables 1 or h; the strides of q and k are of B, h and rows.
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
            const float* mine = around + (tables > 1 ? matrix % heads : 0) * windows * WINDOW * dim;
            for (Size column = 0; column < across; column++) {
                const Size columns = std::min<Size>(WIDE, keys - column * WIDE);
                float* to = out + (matrix * queries + start) * keys + column * WIDE;
                float part[TALL * WIDE];  // whole vectors, of which the last keys' go beyond the row
                float* made = columns % W ? part : to;
                const Size step = columns % W ? WIDE : keys;
                const float* k_tile = packed + (matrix * across + column) * WIDE * dim;
                const float* window = mine + (column * STEPS - row + down - 1) * WINDOW * dim;
                for (Size r = 0; r < std::min<Size>(W, rows); r++)
                    SUMS[parts(rows - r, W) - 1][parts(columns, W) - 1](
                        from + r * q_strides[2], W * q_strides[2], k_tile, window + W - 1 - r, dim, made + r * step,
                        W * step);
                if (made == part)
                    for (Size r = 0; r < rows; r++) std::copy_n(part + r * WIDE, columns, to + r * keys);
            }
        }
    }
}

}  // extern "C"
