# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled passes. Each has a twin of the same name and signature in ``passes_numpy``.

Inputs are ``const`` and come first, outputs last. Every pass gives the same bits for any number of
threads: work is cut into fixed pieces, and partial sums are added in a fixed order.
"""

from cpython cimport array
from cython cimport floating
from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dgemm, sgemm

import array

cdef extern from "kernels.h":
    const int RSKC_HAS_OPENMP
    int rskc_max_threads() noexcept nogil
    void nearest_float(const float*, const float*, int, int, float*, float*) noexcept nogil
    void nearest_double(const double*, const double*, int, int, double*, double*) noexcept nogil
    void store_nearest_float(const float*, const float*, const float*, int, int32_t*, float*) noexcept nogil
    void store_nearest_double(const double*, const double*, const double*, int, int32_t*, double*) noexcept nogil
    void add_row_float(const float*, const double*, double, int, double*) noexcept nogil
    void add_row_double(const double*, const double*, double, int, double*) noexcept nogil
    double weighted_distance_float(const float*, const double*, const double*, int) noexcept nogil
    double weighted_distance_double(const double*, const double*, const double*, int) noexcept nogil
    double centred_distance_float(const float*, const double*, const double*, const double*, int) noexcept nogil
    double centred_distance_double(const double*, const double*, const double*, const double*, int) noexcept nogil
    double trim_run_float(const int32_t*, const float*, int64_t, int64_t, float*, int32_t*) noexcept nogil
    double trim_run_double(const int32_t*, const double*, int64_t, int64_t, double*, int32_t*) noexcept nogil
    int64_t single_moves_float(const float*, const double*, int64_t, int, int, int, int32_t*, double*, double*, double*) noexcept nogil
    int64_t single_moves_double(const double*, const double*, int64_t, int, int, int, int32_t*, double*, double*, double*) noexcept nogil

ctypedef fused real:
    float
    double

cdef array.array DOUBLES = array.array("d")

# The block of scalar products stays in the second-level cache.
cdef enum:
    BLOCK_BYTES = 524288
    STRIPE_ROWS = 8192
    MAX_STRIPES = 16


def has_openmp():
    """Whether the passes were built with OpenMP."""
    return bool(RSKC_HAS_OPENMP)


def max_threads():
    """How many threads OpenMP would use now."""
    return rskc_max_threads()


cdef int block_rows(int64_t n, int64_t columns, int itemsize) noexcept nogil:
    cdef int64_t rows = BLOCK_BYTES // (columns * itemsize)
    rows = max(64, min(1024, rows)) // 16 * 16
    return <int>min(rows, n)


def table(const floating[:, ::1] X, const int64_t[::1] columns, const double[::1] location,
          double factor, double limit, int n_threads, real[:, ::1] out):
    """out = (X - location)[:, columns] * factor, cut off at +-limit."""
    cdef:
        int64_t n = X.shape[0], q = columns.shape[0], i, j, source
        double value
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        for j in range(q):
            source = columns[j]
            value = (<double>X[i, source] - location[source]) * factor
            value = min(max(value, -limit), limit)
            out[i, j] = <real>value


def assign(const floating[:, ::1] X, const floating[:, :, ::1] scaled,
           const floating[:, ::1] constants, const floating[:, ::1] norms, int n_threads,
           int32_t[:, ::1] labels, floating[:, ::1] costs):
    """Nearest centre of every case, for every run.

    scaled = -2 w c and constants = sum w c^2 of each centre; norms = sum w x^2 of each case, one
    row for all runs or one a run.
    """
    cdef:
        int runs = <int>scaled.shape[0], K = <int>scaled.shape[1], q = <int>scaled.shape[2]
        int64_t n = X.shape[0]
        int columns = runs * K
        int block = block_rows(n, columns, sizeof(floating))
        int64_t n_blocks = (n + block - 1) // block, b
        int own_norms = norms.shape[0] > 1
        floating *work
    with nogil, parallel(num_threads=n_threads):
        work = <floating*>malloc((<size_t>block * columns + 2 * block) * sizeof(floating))
        for b in prange(n_blocks, schedule="dynamic"):
            assign_block(&X[b * block, 0], <int>min(<int64_t>block, n - b * block), q, runs, K,
                         &scaled[0, 0, 0], &constants[0, 0], &norms[0, b * block],
                         n if own_norms else 0, n, work, &labels[0, b * block], &costs[0, b * block])
        free(work)


cdef void assign_block(const floating *x, int rows, int q, int runs, int K, const floating *scaled,
                       const floating *constants, const floating *norms, int64_t norms_stride,
                       int64_t n, floating *work, int32_t *labels, floating *costs) noexcept nogil:
    cdef:
        int columns = runs * K, r
        floating one = 1, zero = 0
        floating *best = work + <size_t>rows * columns
        floating *arg = best + rows
        char trans = b"T"
        char no_trans = b"N"
    if floating is float:
        sgemm(&trans, &no_trans, &rows, &columns, &q, &one, <float*>x, &q, <float*>scaled, &q, &zero, work, &rows)
    else:
        dgemm(&trans, &no_trans, &rows, &columns, &q, &one, <double*>x, &q, <double*>scaled, &q, &zero, work, &rows)
    for r in range(runs):
        if floating is float:
            nearest_float(work + <size_t>r * K * rows, constants + r * K, K, rows, best, arg)
            store_nearest_float(best, arg, norms + r * norms_stride, rows, labels + r * n, costs + r * n)
        else:
            nearest_double(work + <size_t>r * K * rows, constants + r * K, K, rows, best, arg)
            store_nearest_double(best, arg, norms + r * norms_stride, rows, labels + r * n, costs + r * n)


def trim(const int32_t[:, ::1] labels, const floating[:, ::1] costs, int64_t m, int n_threads,
         int32_t[:, ::1] groups, double[::1] kept):
    """groups = labels, with -1 for the m cases of largest cost (the lower number first in a tie).

    kept = the sum of the other costs, for each run.
    """
    cdef:
        int64_t runs = labels.shape[0], n = labels.shape[1], r
        floating *work
    with nogil, parallel(num_threads=n_threads):
        work = <floating*>malloc((n + 1) * sizeof(floating))
        for r in prange(runs, schedule="dynamic"):
            if floating is float:
                kept[r] = trim_run_float(&labels[r, 0], &costs[r, 0], n, m, work, &groups[r, 0])
            else:
                kept[r] = trim_run_double(&labels[r, 0], &costs[r, 0], n, m, work, &groups[r, 0])
        free(work)


def shift_sums(const floating[:, ::1] X, const double[::1] location, const int32_t[:, ::1] before,
               const int32_t[:, ::1] after, int n_threads, double[:, :, ::1] totals,
               double[:, ::1] counts, int64_t[::1] moved):
    """Bring totals and counts of each group from the grouping ``before`` to ``after``.

    Only the cases that changed are read. moved = their number, for each run.
    """
    cdef:
        int64_t runs = before.shape[0], n = before.shape[1], size = totals.shape[1] * (totals.shape[2] + 1)
        int stripes = <int>max(1, min(<int64_t>MAX_STRIPES, n // STRIPE_ROWS))
        int64_t rows = (n + stripes - 1) // stripes, r, s, start, K = totals.shape[1], p = totals.shape[2]
        int64_t *changed = <int64_t*>malloc(runs * stripes * sizeof(int64_t))
        double *partial = NULL
    if stripes > 1:
        partial = <double*>malloc(<size_t>runs * stripes * size * sizeof(double))
    with nogil:
        for r in prange(runs * stripes, num_threads=n_threads, schedule="dynamic"):
            if stripes == 1:
                changed[r] = shift_stripe(&X[0, 0], &location[0], &before[r, 0], &after[r, 0], 0, n, p,
                                          &totals[r, 0, 0], &counts[r, 0])
            else:
                changed[r] = shift_partial(&X[0, 0], &location[0], &before[r // stripes, 0],
                                           &after[r // stripes, 0], (r % stripes) * rows,
                                           min(n, (r % stripes + 1) * rows), K, p, partial + r * size)
        if stripes > 1:
            for r in prange(runs, num_threads=n_threads, schedule="static"):
                add_stripes(partial + r * stripes * size, stripes, K, p, &totals[r, 0, 0], &counts[r, 0])
    for r in range(runs):
        moved[r] = 0
        for s in range(stripes):
            moved[r] += changed[r * stripes + s]
    free(changed)
    free(partial)


cdef int64_t shift_partial(const floating *x, const double *location, const int32_t *before,
                           const int32_t *after, int64_t start, int64_t stop, int64_t K, int64_t p,
                           double *partial) noexcept nogil:
    cdef int64_t j
    for j in range(K * (p + 1)):
        partial[j] = 0
    return shift_stripe(x, location, before, after, start, stop, p, partial, partial + K * p)


cdef void add_stripes(const double *partial, int stripes, int64_t K, int64_t p, double *totals,
                      double *counts) noexcept nogil:
    cdef int64_t s, j, size = K * (p + 1)
    for s in range(stripes):
        for j in range(K * p):
            totals[j] += partial[s * size + j]
        for j in range(K):
            counts[j] += partial[s * size + K * p + j]


cdef int64_t shift_stripe(const floating *x, const double *location, const int32_t *before,
                          const int32_t *after, int64_t start, int64_t stop, int64_t p,
                          double *totals, double *counts) noexcept nogil:
    cdef int64_t i, changed = 0
    for i in range(start, stop):
        if before[i] == after[i]:
            continue
        changed += 1
        if before[i] >= 0:
            move_row(x + i * p, location, -1, p, totals + before[i] * p)
            counts[before[i]] -= 1
        if after[i] >= 0:
            move_row(x + i * p, location, 1, p, totals + after[i] * p)
            counts[after[i]] += 1
    return changed


cdef inline void move_row(const floating *x, const double *location, double sign, int64_t p,
                          double *total) noexcept nogil:
    if floating is float:
        add_row_float(x, location, sign, <int>p, total)
    else:
        add_row_double(x, location, sign, <int>p, total)


def own_distances(const floating[:, ::1] X, const double[::1] location,
                  const double[:, ::1] weights, const int32_t[:, ::1] labels,
                  const double[:, :, ::1] centres, int n_threads, double[:, ::1] out):
    """out = weighted squared distance of each case to the centre that its label names.

    weights: one row for all runs or one a run.
    """
    cdef int64_t runs = labels.shape[0], n = labels.shape[1], i, r
    cdef int own = weights.shape[0] > 1
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        for r in range(runs):
            out[r, i] = centred_distance(&X[i, 0], &location[0], &centres[r, labels[r, i], 0],
                                         &weights[r * own, 0], X.shape[1])


cdef inline double centred_distance(const floating *x, const double *location, const double *centre,
                                    const double *weights, int64_t p) noexcept nogil:
    if floating is float:
        return centred_distance_float(x, location, centre, weights, <int>p)
    else:
        return centred_distance_double(x, location, centre, weights, <int>p)


def row_norms(const floating[:, ::1] X, const double[:, ::1] weights, int n_threads,
              floating[:, ::1] out):
    """out[r, i] = sum_j weights[r, j] X[i, j]^2."""
    cdef int64_t runs = weights.shape[0], n = X.shape[0], i, r
    cdef double[::1] zero = array.clone(DOUBLES, X.shape[1], True)
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        for r in range(runs):
            out[r, i] = <floating>weighted_norm(&X[i, 0], &zero[0], &weights[r, 0], X.shape[1])


cdef inline double weighted_norm(const floating *x, const double *centre, const double *weights,
                                 int64_t q) noexcept nogil:
    if floating is float:
        return weighted_distance_float(x, centre, weights, <int>q)
    else:
        return weighted_distance_double(x, centre, weights, <int>q)


def single_moves(const floating[:, ::1] X, const double[:, ::1] weights, int max_rounds,
                 int n_threads, int32_t[:, ::1] groups, double[:, :, ::1] totals,
                 double[:, ::1] counts, int64_t[::1] moves):
    """Move or exchange one case at a time while the within sum of squares falls, for every run.

    moves = the number made, for each run.
    """
    cdef:
        int64_t runs = groups.shape[0], n = X.shape[0], r
        int K = <int>totals.shape[1], q = <int>X.shape[1], own = weights.shape[0] > 1
        double *centres
    with nogil, parallel(num_threads=n_threads):
        centres = <double*>malloc(<size_t>K * q * sizeof(double))
        for r in prange(runs, schedule="dynamic"):
            if floating is float:
                moves[r] = single_moves_float(&X[0, 0], &weights[r * own, 0], n, q, K, max_rounds,
                                              &groups[r, 0], &totals[r, 0, 0], &counts[r, 0], centres)
            else:
                moves[r] = single_moves_double(&X[0, 0], &weights[r * own, 0], n, q, K, max_rounds,
                                               &groups[r, 0], &totals[r, 0, 0], &counts[r, 0], centres)
        free(centres)
