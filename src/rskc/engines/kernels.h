/* The inner loops of the passes, once for float and once for double.

   They are C because the compiler then vectorizes them, and target_clones lets one wheel run
   with AVX-512, AVX2 or plain SSE2, whichever the machine has. */
#ifndef RSKC_KERNELS_H
#define RSKC_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* musl has no ifunc: only GCC with glibc (stdlib.h says whether) gets several versions. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__)
#define RSKC_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RSKC_CLONES
#endif

#if defined(_MSC_VER)
#define RSKC_RESTRICT __restrict
#define RSKC_SUM_IN_LANES(...)
#else
#define RSKC_RESTRICT restrict
#define RSKC_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define RSKC_SUM_IN_LANES(...) RSKC_PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#endif

#ifdef _OPENMP
#include <omp.h>
#define RSKC_HAS_OPENMP 1
static int rskc_max_threads(void) { return omp_get_max_threads(); }
#else
#define RSKC_HAS_OPENMP 0
static int rskc_max_threads(void) { return 1; }
#endif

/* Ask for memory that is needed soon: products read a block in short pieces of many columns, which
   the hardware does not foresee. */
static void rskc_prefetch(const void *start, size_t bytes) {
#if defined(__GNUC__)
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)start + i, 0, 2);
#else
    (void)start, (void)bytes;
#endif
}

/* For trimming: values that are looked at first, and buckets that all are then sorted into. */
#define RSKC_SAMPLE 32
#define RSKC_BUCKETS 1024
/* Up to so many are looked for one after the other. */
#define RSKC_FEW_LARGEST 4
/* Masses that are off by less than this share of what is trimmed are off by rounding. */
#define RSKC_MASS_SLACK 1e-11
/* Less mass than this, where a case has about 1, is none. */
#define RSKC_NO_MASS 1e-9
/* Less observed weight than this share of all weight counts as none. */
#define RSKC_NOTHING 1e-12
/* A distance is summed again, term by term, where what was subtracted from it is this much larger. */
#define RSKC_CANCELLED 1e5
#define RSKC_GAIN (1 - 1e-10) /* a move must gain more than rounding could */
#define RSKC_SCREEN_ROWS 256
/* Sweeps over the candidates of one screening: these cost little where the screening costs much. */
#define RSKC_SWEEPS 10
/* Trimmed cases times columns up to which exchanges are tried; beyond, Lloyd's iterations trim. */
#define RSKC_EXCHANGE_WORK 50000
/* How far products may be off, as a share of the norm of a case. */
#define RSKC_SLACK(T) (sizeof(T) == sizeof(double) ? 1e-12 : 1e-4)

/* Keeps the least of the distances, the sums scaled up, and its k. Where nothing of a case's
   observed weight is left, its distance is infinite. */
RSKC_CLONES
static void nearer(const double *RSKC_RESTRICT sums, const double *RSKC_RESTRICT scale,
                   const double *RSKC_RESTRICT left, double k, int rows, double *RSKC_RESTRICT best,
                   double *RSKC_RESTRICT arg) {
    for (int i = 0; i < rows; i++) {
        double value = (sums[i] > 0 ? sums[i] : 0) * scale[i] / left[i];
        int closer = (left[i] > RSKC_NOTHING * scale[i]) & (value < best[i]);
        best[i] = closer ? value : best[i];
        arg[i] = closer ? k : arg[i];
    }
}

#include "products.h"

/* What products_mixed does, where the machine does not have it: BLAS wants one type for all. */
RSKC_CLONES
static void products_plain(const float *RSKC_RESTRICT x, int64_t stride, int rows, int64_t q,
                           int columns, const double *RSKC_RESTRICT scaled,
                           double *RSKC_RESTRICT out) {
    for (int c = 0; c < columns; c++, out += rows) {
        for (int i = 0; i < rows; i++) out[i] = 0;
        for (int64_t j = 0; j < q; j++) {
            double factor = scaled[c * q + j];
            const float *xj = x + j * stride;
            for (int i = 0; i < rows; i++) out[i] += (double)xj[i] * factor;
        }
    }
}

/* Bytes of work space of a run that is trimmed: one place more than there are cases. */
static size_t trim_room(int64_t n, int by_mass) {
    return (size_t)(n + 1) * (sizeof(double) + (by_mass ? sizeof(int64_t) : 0));
}

/* Doubles that single moves of a run take, counted so that floats fit too. */
static size_t moves_room(int64_t n, int q, int K, int missing) {
    size_t factors = (size_t)K * q * (missing ? 3 : 1);
    size_t product = (size_t)RSKC_SCREEN_ROWS * (K + (missing ? q : 0));
    return 2 * (size_t)K * q + 4 * (size_t)n + factors + product + 2 * K;
}

/* double first: centers are double for both */
#define T double
#define BITS uint64_t
#define NAME(x) x##_double
#include "kernels_typed.h"
#undef T
#undef BITS
#undef NAME

#define T float
#define BITS uint32_t
#define NAME(x) x##_float
#include "kernels_typed.h"
#undef T
#undef BITS
#undef NAME

#endif
