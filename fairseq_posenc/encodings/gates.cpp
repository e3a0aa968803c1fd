// M4M's gates where far distances share a vector: content (o + q_i . a_ij) (o + k_j . a_ij) of all pairs, in place, and
// its backward. See native.py, which compiles it, and gated.py.
//
// Legend: G = B h matrices of Q queries and K keys; E vectors: distance j - i + Q - 1 has vector `first` less than
// that, the first of them whatever is nearer to the left end, the last whatever is beyond it. `of_query` [G, Q, E] and
// `of_key` [G, K, E] are the products with all E.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using Size = std::int64_t;

// Of one row: the columns before `left` have the first vector, those from `right` on the last; column j between them
// the vector j + `shift`.
struct Row {
    Size left, right, shift;
    Row(Size i, Size queries, Size keys, Size first, Size vectors) {
        shift = queries - 1 - i - first;
        left = std::clamp<Size>(1 - shift, 0, keys);
        right = std::clamp<Size>(vectors - 1 - shift, left, keys);
    }
};

// The first and the last column of `of_key`, raised.
void ends(const float* of_key, Size keys, Size vectors, float offset, float* firsts, float* lasts) {
    for (Size j = 0; j < keys; j++) {
        firsts[j] = of_key[j * vectors] + offset;
        lasts[j] = of_key[j * vectors + vectors - 1] + offset;
    }
}

inline void scale(float* content, const float* gates, float gate, Size count) {
#pragma omp simd
    for (Size j = 0; j < count; j++) content[j] *= gates[j] * gate;
}

// The gradients of one vector's columns: of the content in place, of the keys' gates added; that of the query's returned.
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

// content [G, Q, K] becomes the product.
void gates(float* content, const float* of_query, const float* of_key, Size matrices, Size queries, Size keys,
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

// The gradients: content [G, Q, K] becomes its own, given that of the product; of_query's and of_key's are zeros before.
void gates_backward(float* content, const float* grad, const float* of_query, const float* of_key, float* for_query,
                    float* for_key, Size matrices, Size queries, Size keys, Size first, Size vectors, float offset,
                    int threads) {
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
                float* made = content + line * keys;
                const float* given = grad + line * keys;
                const float* mine = of_query + line * vectors;
                float* for_mine = for_query + line * vectors;
                for_mine[0] += scaled(made, given, firsts.data(), mine[0] + offset, for_firsts.data(), row.left);
#pragma omp simd
                for (Size j = row.left; j < right; j++) {
                    const Size at = j * (vectors + 1) + row.shift;
                    const float of_i = mine[j + row.shift] + offset, of_j = of_keys[at] + offset;
                    const float both = made[j] * given[j];
                    for_mine[j + row.shift] += both * of_j;
                    for_keys[at] += both * of_i;
                    made[j] = given[j] * of_i * of_j;
                }
                for_mine[vectors - 1] += scaled(made + right, given + right, lasts.data() + right,
                                                mine[vectors - 1] + offset, for_lasts.data() + right, keys - right);
            }
            for (Size j = 0; j < keys; j++) {
                for_keys[j * vectors] += for_firsts[j];
                for_keys[j * vectors + vectors - 1] += for_lasts[j];
            }
        }
    }
}

}  // extern "C"
