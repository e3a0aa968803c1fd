// Defines `Vector`, a vector register with W floats, for the other C++ files.

#pragma once

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

typedef float Vector __attribute__((vector_size(W * sizeof(float)), aligned(sizeof(float)), may_alias));

inline Vector& at(float* numbers) { return *reinterpret_cast<Vector*>(numbers); }
inline const Vector& at(const float* numbers) { return *reinterpret_cast<const Vector*>(numbers); }
