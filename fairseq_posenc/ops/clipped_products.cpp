// Combines the products of queries and of keys with the vectors of distances, if all distances beyond a limit share a
// vector. `spread` adds both products for each pair. `gates` computes M4M's q_i·k_j (o + q_i·a_ij) (o + k_j·a_ij).
// The factor q_i·k_j is called the content. Both functions have a backward. cpp.py compiles and calls this file; see
// also clipped_products.py.
//
// Legend: G matrices (one per sample and head) of Q queries and K keys. There are E vectors. The pair (i, j) has vector
// j - i + Q - 1 - first, clamped to the range from 0 to E - 1. `of_query` [G, Q, E] and `of_key` [G, K, E] are the
// products with all E vectors.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using Size = std::int64_t;

// Says which vector each column of a row has: the columns before `left` have the first vector, and the columns from
// `right` on have the last one. A column j between them has the vector j + `shift`.
struct Row {
    Size left, right, shift;
    Row(Size i, Size queries, Size keys, Size first, Size vectors) {
        shift = queries - 1 - i - first;
        left = std::clamp<Size>(1 - shift, 0, keys);
        right = std::clamp<Size>(vectors - 1 - shift, left, keys);
    }
};

// Copies the first and the last column of `of_key`, and adds `offset` to both copies.
void ends(const float* of_key, Size keys, Size vectors, float offset, float* firsts, float* lasts) {
    for (Size j = 0; j < keys; j++) {
        firsts[j] = of_key[j * vectors] + offset;
        lasts[j] = of_key[j * vectors + vectors - 1] + offset;
    }
}

// Computes `clipped_spread` for one matrix, with the products of queries, of keys or of both.
template <bool OF_QUERY, bool OF_KEY, bool ADD>
void spread(float* out, const float* of_query, const float* of_key, Size queries, Size keys, Size first, Size vectors) {
    const auto put = [](float& out, float number) { out = ADD ? out + number : number; };
    const Size last = vectors - 1;
    std::vector<float> firsts(OF_KEY ? keys : 0), lasts(OF_KEY ? keys : 0);
    if (OF_KEY) ends(of_key, keys, vectors, 0, firsts.data(), lasts.data());
    for (Size i = 0; i < queries; i++, out += keys) {
        const Row row(i, queries, keys, first, vectors);
        const float* mine = OF_QUERY ? of_query + i * vectors : nullptr;
        const float before = OF_QUERY ? mine[0] : 0, behind = OF_QUERY ? mine[last] : 0;
#pragma omp simd
        for (Size j = 0; j < row.left; j++) put(out[j], before + (OF_KEY ? firsts[j] : 0));
#pragma omp simd
        for (Size j = row.left; j < row.right; j++)
            put(out[j], (OF_QUERY ? mine[j + row.shift] : 0) + (OF_KEY ? of_key[j * (vectors + 1) + row.shift] : 0));
#pragma omp simd
        for (Size j = row.right; j < keys; j++) put(out[j], behind + (OF_KEY ? lasts[j] : 0));
    }
}

inline float sum(const float* numbers, Size count) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (Size j = 0; j < count; j++) total += numbers[j];
    return total;
}

inline void add(const float* numbers, float* totals, Size count) {
#pragma omp simd
    for (Size j = 0; j < count; j++) totals[j] += numbers[j];
}

void add_ends(const float* firsts, const float* lasts, Size keys, Size vectors, float* of_key) {
    for (Size j = 0; j < keys; j++) {
        of_key[j * vectors] += firsts[j];
        of_key[j * vectors + vectors - 1] += lasts[j];
    }
}

template <bool OF_QUERY, bool OF_KEY>
void spread_backward(const float* grad, float* of_query, float* of_key, Size queries, Size keys, Size first,
                     Size vectors) {
    std::vector<float> firsts(OF_KEY ? keys : 0), lasts(OF_KEY ? keys : 0);
    for (Size i = 0; i < queries; i++, grad += keys) {
        const Row row(i, queries, keys, first, vectors);
        if (OF_QUERY) {
            float* mine = of_query + i * vectors;
            for (Size j = row.left; j < row.right; j++) mine[j + row.shift] = grad[j];
            mine[0] += sum(grad, row.left);
            mine[vectors - 1] += sum(grad + row.right, keys - row.right);
        }
        if (OF_KEY) {
            add(grad, firsts.data(), row.left);
            for (Size j = row.left; j < row.right; j++) of_key[j * (vectors + 1) + row.shift] += grad[j];
            add(grad + row.right, lasts.data() + row.right, keys - row.right);
        }
    }
    if (OF_KEY) add_ends(firsts.data(), lasts.data(), keys, vectors, of_key);
}

inline void scale(float* content, const float* gates, float gate, Size count) {
#pragma omp simd
    for (Size j = 0; j < count; j++) content[j] *= gates[j] * gate;
}

// Computes the gradients for the columns that share a vector. The function replaces the content by its gradient, adds
// the gradient of the keys' gates to `for_gates`, and returns the gradient of the query's gate.
inline float scaled(float* content, const float* grad, const float* gates, float gate, float* for_gates, Size count) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Size j = 0; j < count; j++) {
        const float both = content[j] * grad[j];
        sum += both * gates[j];
        for_gates[j] += both * gate;
        content[j] = grad[j] * gates[j] * gate;
    }
    return sum;
}

}  // namespace

extern "C" {

// Copies products by distance, `window` [tables, G / tables, wide, width], to `pairs` [G, rows, columns]. They are
// written to `wide` columns from `start` on and to `width` - `wide` + 1 rows from `top` on.
void clipped_across(float* pairs, const float* window, Size matrices, Size tables, Size rows, Size columns, Size start,
                Size wide, Size top, Size width, int threads) {
#pragma omp parallel for num_threads(threads)
    for (Size g = 0; g < matrices; g++) {
        const float* mine = window + (g % tables * (matrices / tables) + g / tables) * wide * width + wide - 1;
        float* line = pairs + (g * rows + top) * columns + start;
        for (Size r = 0; r < width - wide + 1; r++, line += columns)  // all r read the same few cache lines
#pragma omp simd
            for (Size c = 0; c < wide; c++) line[c] = mine[c * (width - 1) + r];
    }
}

void clipped_across_backward(const float* pairs, float* window, Size matrices, Size tables, Size rows, Size columns,
                         Size start, Size wide, Size top, Size width, int threads) {
    constexpr Size TILE = 8;  // scattered reads are faster than scattered writes
    const Size high = width - wide + 1;
#pragma omp parallel for num_threads(threads)
    for (Size g = 0; g < matrices; g++) {
        float* mine = window + (g % tables * (matrices / tables) + g / tables) * wide * width + wide - 1;
        const float* line = pairs + (g * rows + top) * columns + start;
        Size r = 0;
        for (; r + TILE <= high; r += TILE)
            for (Size c = 0; c < wide; c++)
#pragma omp simd
                for (Size e = 0; e < TILE; e++) mine[c * (width - 1) + r + e] = line[(r + e) * columns + c];
        for (; r < high; r++)
            for (Size c = 0; c < wide; c++) mine[c * (width - 1) + r] = line[r * columns + c];
    }
}

// Writes the sum of `of_query` and `of_key` to out [G, Q, K], or adds the sum to `out` if `add` is set. Either of the
// two pointers may be null.
void clipped_spread(float* out, const float* of_query, const float* of_key, Size matrices, Size queries, Size keys,
                Size first, Size vectors, int add, int threads) {
    const auto kernel = of_query ? of_key ? (add ? spread<true, true, true> : spread<true, true, false>)
                                          : (add ? spread<true, false, true> : spread<true, false, false>)
                                 : (add ? spread<false, true, true> : spread<false, true, false>);
#pragma omp parallel for num_threads(threads)
    for (Size g = 0; g < matrices; g++)
        kernel(out + g * queries * keys, of_query ? of_query + g * queries * vectors : nullptr,
               of_key ? of_key + g * keys * vectors : nullptr, queries, keys, first, vectors);
}

// Writes the gradients of `clipped_spread` into `of_query` and `of_key`, which must hold zeros before. Either of the
// two pointers may be null.
void clipped_spread_backward(const float* grad, float* of_query, float* of_key, Size matrices, Size queries, Size keys,
                         Size first, Size vectors, int threads) {
    const auto kernel = of_query ? of_key ? spread_backward<true, true> : spread_backward<true, false>
                                 : spread_backward<false, true>;
#pragma omp parallel for num_threads(threads)
    for (Size g = 0; g < matrices; g++)
        kernel(grad + g * queries * keys, of_query ? of_query + g * queries * vectors : nullptr,
               of_key ? of_key + g * keys * vectors : nullptr, queries, keys, first, vectors);
}

// Multiplies content [G, Q, K] by both gates in place.
void clipped_gates(float* content, const float* of_query, const float* of_key, Size matrices, Size queries, Size keys,
               Size first, Size vectors, float offset, int threads) {
#pragma omp parallel num_threads(threads)
    {
        std::vector<float> firsts(keys), lasts(keys);
#pragma omp for
        for (Size g = 0; g < matrices; g++) {
            const float* of_keys = of_key + g * keys * vectors;
            ends(of_keys, keys, vectors, offset, firsts.data(), lasts.data());
            for (Size i = 0; i < queries; i++) {
                const Row row(i, queries, keys, first, vectors);
                float* out = content + (g * queries + i) * keys;
                const float* mine = of_query + (g * queries + i) * vectors;
                scale(out, firsts.data(), mine[0] + offset, row.left);
#pragma omp simd
                for (Size j = row.left; j < row.right; j++)
                    out[j] *= (mine[j + row.shift] + offset) * (of_keys[j * (vectors + 1) + row.shift] + offset);
                scale(out + row.right, lasts.data() + row.right, mine[vectors - 1] + offset, keys - row.right);
            }
        }
    }
}

// Replaces content [G, Q, K] by its gradient, and adds the gradients of `of_query` and `of_key` to `for_query` and
// `for_key`, which must hold zeros before.
void clipped_gates_backward(float* content, const float* grad, const float* of_query, const float* of_key,
                        float* for_query, float* for_key, Size matrices, Size queries, Size keys, Size first,
                        Size vectors, float offset, int threads) {
#pragma omp parallel num_threads(threads)
    {
        std::vector<float> firsts(keys), lasts(keys), for_firsts(keys), for_lasts(keys);
#pragma omp for
        for (Size g = 0; g < matrices; g++) {
            const float* of_keys = of_key + g * keys * vectors;
            float* for_keys = for_key + g * keys * vectors;
            ends(of_keys, keys, vectors, offset, firsts.data(), lasts.data());
            std::fill(for_firsts.begin(), for_firsts.end(), 0.0f);
            std::fill(for_lasts.begin(), for_lasts.end(), 0.0f);
            for (Size i = 0; i < queries; i++) {
                const Row row(i, queries, keys, first, vectors);
                const Size line = g * queries + i, right = row.right;
                float* inout = content + line * keys;
                const float* by_pair = grad + line * keys;
                const float* mine = of_query + line * vectors;
                float* for_mine = for_query + line * vectors;
                for_mine[0] += scaled(inout, by_pair, firsts.data(), mine[0] + offset, for_firsts.data(), row.left);
#pragma omp simd
                for (Size j = row.left; j < right; j++) {
                    const Size at = j * (vectors + 1) + row.shift;
                    const float of_i = mine[j + row.shift] + offset, of_j = of_keys[at] + offset;
                    const float both = inout[j] * by_pair[j];
                    for_mine[j + row.shift] += both * of_j;
                    for_keys[at] += both * of_i;
                    inout[j] = by_pair[j] * of_i * of_j;
                }
                for_mine[vectors - 1] += scaled(inout + right, by_pair + right, lasts.data() + right,
                                                mine[vectors - 1] + offset, for_lasts.data() + right, keys - right);
            }
            add_ends(for_firsts.data(), for_lasts.data(), keys, vectors, for_keys);
        }
    }
}

}  // extern "C"
