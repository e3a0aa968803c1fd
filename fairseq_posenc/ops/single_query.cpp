// Computes products of one query with all keys, where key j has the vector a_j of its distance. The products are the
// sums over D of k_j a_j, of k_j (q + a_j), of k_j q a_j, or of both k_j q and k_j a_j. Each key is read once, because
// reading takes most of the time. cpp.py compiles and calls this file; see also single_query.py.
//
// Legend: B samples of h heads, K keys, D head width. W keys are processed at a time; a vector register has W numbers.

#include <cstdint>

#include "simd.h"

namespace {

using Size = std::int64_t;

enum Way { ALONE, ADDED, MULTIPLIED, BOTH };

typedef int Lanes __attribute__((vector_size(W * sizeof(int))));

constexpr Size AHEAD = 3 * W;

// Returns the sums of neighbours in u, followed by the sums of neighbours in v.
inline Vector halved(Vector u, Vector v) {
#if defined(__clang__)
    Vector halves;
    for (int i = 0; i < W / 2; i++) halves[i] = u[2 * i] + u[2 * i + 1], halves[i + W / 2] = v[2 * i] + v[2 * i + 1];
    return halves;
#else
    Lanes even, odd;
    for (int i = 0; i < W; i++) even[i] = 2 * i, odd[i] = 2 * i + 1;
    return __builtin_shuffle(u, v, even) + __builtin_shuffle(u, v, odd);
#endif
}

template <Way WAY, typename T>
inline T term(T k, T q, T a) {
    return WAY == ADDED ? k * (q + a) : WAY == MULTIPLIED ? k * q * a : k * a;
}

// Returns the sum for one key over the numbers from d on.
template <Way WAY>
inline float rest(const float* k, const float* q, const float* a, Size d, Size dim) {
    float sum = 0;
    for (; d < dim; d++) sum += term<WAY>(k[d], WAY == ALONE ? 0 : q[d], a[d]);
    return sum;
}

// Computes the sums of W keys. If `a_step` is 0, all keys have the same vector.
template <Way WAY>
inline void block(const float* k, Size k_step, const float* q, const float* a, Size a_step, Size dim, float* out) {
    const Size ahead = a_step ? AHEAD * k_step : 0;  // prefetch keys if vectors are read too
    Vector sums[W];
    Size d = 0;
#pragma GCC unroll 16
    for (int j = 0; j < W; j++) {  // read key by key, in the order of memory
        Vector sum = {};
        for (d = 0; d + W <= dim; d += W) {
            __builtin_prefetch(k + j * k_step + d + ahead);
            sum += term<WAY>(at(k + j * k_step + d), WAY == ALONE ? Vector{} : at(q + d), at(a + j * a_step + d));
        }
        sums[j] = sum;
    }
#pragma GCC unroll 4
    for (int left = W; left > 1; left /= 2)  // add up the registers until one holds a sum per key
#pragma GCC unroll 8
        for (int j = 0; j < left / 2; j++) sums[j] = halved(sums[2 * j], sums[2 * j + 1]);
    at(out) = sums[0];
    if (d < dim)
        for (int j = 0; j < W; j++) out[j] += rest<WAY>(k + j * k_step, q, a + j * a_step, d, dim);
}

// Computes the sums of any number of keys. With BOTH, k_j q is written to `out` and k_j a_j to `more`.
template <Way WAY>
void pass(const float* k, Size k_step, const float* q, const float* a, Size a_step, Size keys, Size dim, float* out,
          float* more) {
    constexpr Way SINGLE = WAY == BOTH ? ALONE : WAY;
    float* with_vectors = WAY == BOTH ? more : out;
    Size j = 0;
    for (; j + W <= keys; j += W, k += W * k_step, a += W * a_step) {
        block<SINGLE>(k, k_step, q, a, a_step, dim, with_vectors + j);
        if (WAY == BOTH) block<ALONE>(k, k_step, q, q, 0, dim, out + j);
    }
    for (; j < keys; j++, k += k_step, a += a_step) {
        with_vectors[j] = rest<SINGLE>(k, q, a, 0, dim);
        if (WAY == BOTH) out[j] = rest<ALONE>(k, q, q, 0, dim);
    }
}

using Pass = void (*)(const float*, Size, const float*, const float*, Size, Size, Size, float*, float*);
constexpr Pass WAYS[] = {pass<ALONE>, pass<ADDED>, pass<MULTIPLIED>, pass<BOTH>};

}  // namespace

// Writes the sums to out [B, h, 1 or 2, K]. k is [B, h, K, D] with the strides `steps`, and q is [B, h, D].
// `table_step` is the number of floats from one table of vectors [1 or h, ..., D] to the next, or 0 if there is one
// table. The first `shared` keys have the first vector.
extern "C" void single_query(const float* k, const Size* steps, const float* q, const float* vectors, Size table_step,
                          float* out, Size batch, Size heads, Size keys, Size dim, Size shared, int way, int threads) {
    const Size rows = way == BOTH ? 2 : 1;
#pragma omp parallel for num_threads(threads)
    for (Size g = 0; g < batch * heads; g++) {
        const float* own = k + g / heads * steps[0] + g % heads * steps[1];
        const float* a = vectors + g % heads * table_step;
        const float* query = q ? q + g * dim : nullptr;
        float* here = out + g * rows * keys;
        WAYS[way](own, steps[2], query, a, 0, shared, dim, here, here + keys);
        WAYS[way](own + shared * steps[2], steps[2], query, a + (shared ? dim : 0), dim, keys - shared, dim,
                  here + shared, here + keys + shared);
    }
}
