# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""The compiled passes. Each has a twin of the same name and signature in ``passes_numpy``.

Inputs are ``const`` and come first, outputs last. Every pass gives the same bits for any number of
threads: work is cut into fixed pieces, and partial sums are added in a fixed order.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport HUGE_VAL, fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm, sgemm


cdef extern from "kernels.h":
    const int RSKC_HAS_OPENMP
    const double CANCELLED "RSKC_CANCELLED"
    int rskc_max_threads() noexcept nogil
    void rskc_prefetch(const void*, size_t) noexcept nogil
    void nearest_float(const float*, const float*, int, int, float*, float*) noexcept nogil
    void nearest_double(const double*, const double*, int, int, double*, double*) noexcept nogil
    void store_nearest_float(const float*, const float*, const float*, int, int32_t*, float*) noexcept nogil
    void store_nearest_double(const double*, const double*, const double*, int, int32_t*, double*) noexcept nogil
    void store_scaled_float(const float*, const float*, const float*, const double*, int, int32_t*, float*) noexcept nogil
    void store_scaled_double(const double*, const double*, const double*, const double*, int, int32_t*, double*) noexcept nogil
    void take_feature_float(const float*, const float*, double, double, const double*, int, double*, double*) noexcept nogil
    void take_feature_double(const double*, const double*, double, double, const double*, int, double*, double*) noexcept nogil
    int take_out_float(const float*, const float*, const double*, int, double*) noexcept nogil
    int take_out_double(const double*, const double*, const double*, int, double*) noexcept nogil
    double sum_without_float(const float*, int64_t, int64_t, const double*, const float*, const int64_t*, int64_t) noexcept nogil
    double sum_without_double(const double*, int64_t, int64_t, const double*, const double*, const int64_t*, int64_t) noexcept nogil
    void nearer(const double*, const double*, const double*, double, int, double*, double*) noexcept nogil
    int scale_observed_center_float(const double*, const double*, int, float*) noexcept nogil
    int scale_observed_center_double(const double*, const double*, int, double*) noexcept nogil
    double scale_center_float(const double*, const double*, int, float*) noexcept nogil
    double scale_center_double(const double*, const double*, int, double*) noexcept nogil
    void center_row_float(const float*, const int64_t*, const double*, double, const double*, int64_t, double*) noexcept nogil
    void center_row_double(const double*, const int64_t*, const double*, double, const double*, int64_t, double*) noexcept nogil
    void center_observed_row_float(const float*, const int64_t*, const double*, double, const double*, int64_t, double*) noexcept nogil
    void center_observed_row_double(const double*, const int64_t*, const double*, double, const double*, int64_t, double*) noexcept nogil
    void add_row_float(const float*, const double*, double, int, double*) noexcept nogil
    void add_row_double(const double*, const double*, double, int, double*) noexcept nogil
    void add_plain_row_float(const float*, double, int, double*) noexcept nogil
    void add_plain_row_double(const double*, double, int, double*) noexcept nogil
    void add_observed_row_float(const float*, const double*, double, double, int, double*) noexcept nogil
    void add_observed_row_double(const double*, const double*, double, double, int, double*) noexcept nogil
    double framed_distance_float(const float*, const double*, double, const double*, const double*, int) noexcept nogil
    double framed_distance_double(const double*, const double*, double, const double*, const double*, int) noexcept nogil
    double observed_distance_float(const float*, const double*, double, const double*, const double*, double, int) noexcept nogil
    double observed_distance_double(const double*, const double*, double, const double*, const double*, double, int) noexcept nogil
    double observed_weight_double(const double*, const double*, int) noexcept nogil
    double missing_factor_float(const float*, const double*, double, int) noexcept nogil
    double missing_factor_double(const double*, const double*, double, int) noexcept nogil
    void add_squares_float(const float*, double, int64_t, double*) noexcept nogil
    void add_squares_double(const double*, double, int64_t, double*) noexcept nogil
    double trim_run_float(const int32_t*, const float*, int64_t, int64_t, float*, int32_t*) noexcept nogil
    double trim_run_double(const int32_t*, const double*, int64_t, int64_t, double*, int32_t*) noexcept nogil
    double trim_masses_run_float(const int32_t*, const float*, const double*, int64_t, double, void*, int32_t*, int64_t*, double*) noexcept nogil
    double trim_masses_run_double(const int32_t*, const double*, const double*, int64_t, double, void*, int32_t*, int64_t*, double*) noexcept nogil
    size_t trim_masses_room_float(int64_t) noexcept nogil
    size_t trim_masses_room_double(int64_t) noexcept nogil
    ctypedef void (*Gemm_float)(char*, char*, int*, int*, int*, float*, float*, int*, float*, int*, float*, float*, int*) noexcept nogil
    ctypedef void (*Gemm_double)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*, double*, int*) noexcept nogil
    size_t work_size_float(int64_t, int, int) noexcept nogil
    size_t work_size_missing_float(int64_t, int, int) noexcept nogil
    int64_t single_moves_float(const float*, const double*, const double*, const double*, int64_t, int, int, int, int32_t*, double*, double*, Gemm_float, double*) noexcept nogil
    int64_t single_moves_double(const double*, const double*, const double*, const double*, int64_t, int, int, int, int32_t*, double*, double*, Gemm_double, double*) noexcept nogil
    int64_t single_moves_missing_float(const float*, const double*, const double*, const double*, int64_t, int, int, int, int32_t*, double*, double*, Gemm_float, double*) noexcept nogil
    int64_t single_moves_missing_double(const double*, const double*, const double*, const double*, int64_t, int, int, int, int32_t*, double*, double*, Gemm_double, double*) noexcept nogil

cdef extern from "cells.h":
    const int CELL_LANES "RSKC_CELL_LANES"
    void bounded_costs(const double*, const double*, const double*, const double*, double, int, double*) noexcept nogil
    void keep_nearest(const double*, double, double*, double*) noexcept nogil
    double bounded_distance(const double*, const double*, const double*, const double*, double, int) noexcept nogil
    void add_bounded(const double*, const double*, const double*, double, int, double*, double*, double*) noexcept nogil
    double lower_median(double*, int64_t) noexcept nogil

ctypedef fused real:
    float
    double

# Cases of a table lie in blocks of this many, column by column within a block: then the
# product of a block with the centers needs no packing, and BLAS is twice as fast for few centers.
BLOCK = 256

cdef enum:
    TABLE_BLOCK = 256
    # The most multiplications that OpenBLAS makes without packing.
    SMALL_PRODUCT = 1000000
    ROWS_AT_ONCE = 16
    # The least number of cases in a product, and the least number of pieces where there are cases enough.
    LEAST_PRODUCT = 32
    FEWEST_PIECES = 4
    # From this number of pieces on, threads take the next that is free.
    MANY_PIECES = 256
    # Cases of a stripe of sums: at least this many, and for each cluster. The sums of a stripe take room.
    STRIPE_ROWS = 2048
    STRIPE_CASES = 64
    MAX_STRIPES = 16

# Parts that differ by less are the same: sums of masses are rounded.
cdef double SAME_PART = 1e-9


def has_openmp():
    """Whether the passes were built with OpenMP."""
    return bool(RSKC_HAS_OPENMP)


def max_threads():
    """How many threads OpenMP would use now."""
    return rskc_max_threads()


cdef void* reserved(size_t n_bytes) except NULL:
    """Return work space. All of it is reserved before threads begin, which cannot raise."""
    cdef void *room = malloc(max(n_bytes, <size_t>1))
    if room == NULL:
        raise MemoryError(f"A pass needs {n_bytes} bytes of work space, which are not free.")
    return room


cdef struct Block:
    int64_t first  # number of the first case
    int64_t offset  # where it begins
    int rows


cdef inline Block block_at(int64_t number, int64_t n, int64_t q, int64_t size) noexcept nogil:
    cdef Block block
    block.first = number * size
    block.offset = block.first * q
    block.rows = <int>min(size, n - block.first)
    return block


def table(const floating[:, ::1] X, const int64_t[::1] columns, const double[::1] location,
          double factor, const double[::1] limits, int block, int n_threads, real[::1] out):
    """out = (X - location)[:, columns] * factor, cut off at +-limits, in blocks.

    Where there is room for twice as many columns, values, 0 for a NaN, are followed by marks: 1 where
    a cell is observed, 0 where it is NaN.
    """
    cdef:
        int64_t n = X.shape[0], q = columns.shape[0], b
        int64_t width = 2 * q if out.shape[0] > n * q else q
        const int64_t *subset = NULL if q == X.shape[1] else &columns[0]
        size_t size = ROWS_AT_ONCE * width
        double *work = <double*>reserved(n_threads * size * sizeof(double))
    for b in prange((n + block - 1) // block, nogil=True, num_threads=n_threads, schedule="static"):
        fill_block(X, subset, &location[0], factor, &limits[0], q, width, block_at(b, n, width, block),
                   work + threadid() * size, &out[0])
    free(work)


cdef void fill_block(const floating[:, ::1] X, const int64_t *columns, const double *location,
                     double factor, const double *limits, int64_t q, int64_t width, Block block, double *work,
                     real *out) noexcept nogil:
    """A few rows at a time: a few streams to read, and whole cache lines to write."""
    cdef int64_t i, j, start = 0, rows
    out += block.offset
    while start < block.rows:
        rows = min(<int64_t>ROWS_AT_ONCE, block.rows - start)
        for i in range(rows):
            if floating is float:
                if width == q:
                    center_row_float(&X[block.first + start + i, 0], columns, location, factor, limits, q, work + i * q)
                else:
                    center_observed_row_float(&X[block.first + start + i, 0], columns, location, factor, limits, q, work + i * width)
            else:
                if width == q:
                    center_row_double(&X[block.first + start + i, 0], columns, location, factor, limits, q, work + i * q)
                else:
                    center_observed_row_double(&X[block.first + start + i, 0], columns, location, factor, limits, q, work + i * width)
        if block.rows == 1:  # row by row: a loop that the compiler vectorizes
            for j in range(width):
                out[j] = <real>work[j]
        else:
            for j in range(width):
                for i in range(rows):
                    out[j * block.rows + start + i] = <real>work[i * width + j]
        start += rows


def scale_centers(const double[:, ::1] weights, const double[:, :, ::1] centers,
                  floating[:, :, ::1] scaled, floating[:, ::1] constants):
    """scaled = -2 w c and constants = sum w c^2 of each center; weights: one row or one a run."""
    cdef int64_t r, k, own = weights.shape[0] > 1
    cdef int q = <int>centers.shape[2]
    with nogil:
        for r in range(centers.shape[0]):
            for k in range(centers.shape[1]):
                if floating is float:
                    constants[r, k] = <float>scale_center_float(&weights[r * own, 0], &centers[r, k, 0], q, &scaled[r, k, 0])
                else:
                    constants[r, k] = scale_center_double(&weights[r * own, 0], &centers[r, k, 0], q, &scaled[r, k, 0])


def assign(const floating[::1] X, int block, const floating[:, :, ::1] scaled,
           const floating[:, ::1] constants, const floating[:, ::1] norms, int n_threads,
           int32_t[:, ::1] labels, floating[:, ::1] costs):
    """Nearest center of every case of a table, for every run.

    scaled and constants are those of ``scale_centers``; norms = sum w x^2 of each case, one row for
    all runs or one a run.
    """
    cdef:
        int runs = <int>scaled.shape[0], K = <int>scaled.shape[1], q = <int>scaled.shape[2]
        int64_t n = labels.shape[1], b
        int columns = runs * K
        int64_t norms_stride = n if norms.shape[0] > 1 else 0
        int step = product_rows(n, block, columns, q)
        size_t size = <size_t>step * columns + 2 * step
        floating *work = <floating*>reserved(n_threads * size * sizeof(floating))
        int64_t pieces = (block + step - 1) // step, last = count_pieces(n, block, step)
    if last < MANY_PIECES:  # the same thread has the same cases each time, in its own cache
        for b in prange(last, nogil=True, num_threads=n_threads, schedule="static", chunksize=1):
            assign_piece(&X[0], piece_at(b, pieces, step, n, q, block), q, runs, K, &scaled[0, 0, 0], &constants[0, 0],
                         &norms[0, 0], norms_stride, n, work + threadid() * size, &labels[0, 0], &costs[0, 0])
    else:
        for b in prange(last, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=8):
            if b % pieces == 0:
                prefetch_block(&X[0], b // pieces + 1, n, q, block)
            assign_piece(&X[0], piece_at(b, pieces, step, n, q, block), q, runs, K, &scaled[0, 0, 0], &constants[0, 0],
                         &norms[0, 0], norms_stride, n, work + threadid() * size, &labels[0, 0], &costs[0, 0])
    free(work)


cdef int product_rows(int64_t n, int block, int64_t columns, int64_t q) noexcept nogil:
    """Cases in one product: as many as BLAS multiplies without packing, if that is worth it.

    Few cases are cut into a few pieces, so that several threads have some each.
    """
    cdef int64_t rows = SMALL_PRODUCT // (columns * q) // 16 * 16
    rows = min(<int64_t>block, rows) if rows >= LEAST_PRODUCT else block
    while rows > LEAST_PRODUCT and rows * FEWEST_PIECES > n:
        rows = max(<int64_t>LEAST_PRODUCT, rows // 32 * 16)
    return <int>rows


cdef inline int64_t count_pieces(int64_t n, int block, int step) noexcept nogil:
    """Pieces of all blocks; those of the last one are fewer where it is not full."""
    return n // block * ((block + step - 1) // step) + (n % block + step - 1) // step


cdef inline void prefetch_block(const floating *x, int64_t number, int64_t n, int64_t q, int block) noexcept nogil:
    cdef Block part = block_at(number, n, q, block)
    if part.rows > 0:
        rskc_prefetch(x + part.offset, part.rows * q * sizeof(floating))


cdef struct Piece:
    # Some cases of a block.
    int64_t first  # number of the first case
    int64_t offset  # where it begins
    int stride  # from one column to the next: the cases of the block
    int rows


cdef inline Piece piece_at(int64_t number, int64_t pieces, int step, int64_t n, int64_t q, int block) noexcept nogil:
    cdef Block whole = block_at(number // pieces, n, q, block)
    cdef int64_t start = number % pieces * step
    return Piece(whole.first + start, whole.offset + start, whole.rows, <int>min(<int64_t>step, whole.rows - start))


cdef inline void multiply(const floating *x, Piece piece, int q, int columns, const floating *scaled,
                          floating *out) noexcept nogil:
    """out = the products of the cases of a piece, which begins at x, with centers: a column for each of these."""
    cdef floating one = 1, zero = 0
    cdef char no_trans = b"N"
    if floating is float:
        sgemm(&no_trans, &no_trans, &piece.rows, &columns, &q, &one, <float*>x, &piece.stride, <float*>scaled, &q, &zero, out, &piece.rows)
    else:
        dgemm(&no_trans, &no_trans, &piece.rows, &columns, &q, &one, <double*>x, &piece.stride, <double*>scaled, &q, &zero, out, &piece.rows)


cdef void assign_piece(const floating *x, Piece piece, int q, int runs, int K, const floating *scaled,
                       const floating *constants, const floating *norms, int64_t norms_stride, int64_t n,
                       floating *work, int32_t *labels, floating *costs) noexcept nogil:
    cdef int r
    cdef floating *best = work + <size_t>piece.rows * runs * K
    cdef floating *product
    x += piece.offset
    multiply(x, piece, q, runs * K, scaled, work)
    norms += piece.first
    labels += piece.first
    costs += piece.first
    for r in range(runs):
        product = work + <size_t>r * K * piece.rows
        if floating is float:
            nearest_float(product, constants + r * K, K, piece.rows, best, best + piece.rows)
            store_nearest_float(best, best + piece.rows, norms + r * norms_stride, piece.rows, labels + r * n, costs + r * n)
        else:
            nearest_double(product, constants + r * K, K, piece.rows, best, best + piece.rows)
            store_nearest_double(best, best + piece.rows, norms + r * norms_stride, piece.rows, labels + r * n, costs + r * n)


def scale_centers_missing(const double[:, ::1] weights, const double[:, :, ::1] centers, int n_threads,
                          floating[:, :, ::1] scaled, int64_t[::1] starts):
    """scaled (runs, K, 2q) = -2 w c and then w c^2, 0 where a center is NaN.

    starts (runs * K + 1) = the number of features that have weight in which the centers before are NaN.
    """
    cdef int64_t runs = centers.shape[0], K = centers.shape[1], c, own = weights.shape[0] > 1
    cdef int q = <int>centers.shape[2]
    starts[0] = 0
    for c in prange(runs * K, nogil=True, num_threads=n_threads, schedule="static"):
        if floating is float:
            starts[c + 1] = scale_observed_center_float(&weights[c // K * own, 0], &centers[c // K, c % K, 0], q, &scaled[c // K, c % K, 0])
        else:
            starts[c + 1] = scale_observed_center_double(&weights[c // K * own, 0], &centers[c // K, c % K, 0], q, &scaled[c // K, c % K, 0])
    for c in range(runs * K):
        starts[c + 1] += starts[c]


def unseen_features(const double[:, ::1] weights, const double[:, :, ::1] centers, const int64_t[::1] starts,
                    int n_threads, int64_t[::1] columns):
    """columns[starts[c] : starts[c + 1]] = the features that have weight in which center c of all runs' is NaN."""
    cdef int64_t runs = centers.shape[0], K = centers.shape[1], q = centers.shape[2], c
    cdef int64_t own = weights.shape[0] > 1
    for c in prange(runs * K, nogil=True, num_threads=n_threads, schedule="static"):
        note_unseen(&weights[c // K * own, 0], &centers[c // K, c % K, 0], q, &columns[0] + starts[c])


cdef void note_unseen(const double *weights, const double *center, int64_t q, int64_t *columns) noexcept nogil:
    cdef int64_t j, found = 0
    for j in range(q):
        if center[j] != center[j] and weights[j] > 0:
            columns[found] = j
            found += 1


cdef struct Unseen:
    # The features of each center in which it is not observed: columns[starts[k]] up to columns[starts[k + 1]].
    const int64_t *starts
    const int64_t *columns
    const double *weights
    double total  # of the weights


def assign_missing(const floating[::1] X, int block, const floating[:, :, ::1] scaled, const int64_t[::1] starts,
                   const int64_t[::1] columns, const double[:, ::1] weights, const floating[:, ::1] norms,
                   const double[:, ::1] scale, int n_threads, int32_t[:, ::1] labels, floating[:, ::1] costs):
    """Nearest center of every case of a table of values and marks, for every run.

    scaled is that of ``scale_centers_missing``. columns[starts[c] : starts[c + 1]] are the features in which the
    center c of all runs' is NaN. norms = sum w x^2 of each case and scale = what its distances are multiplied by;
    one row, or one a run, as weights. Label and cost are 0 where scale is, and cost is too where no center is observed.
    """
    cdef:
        int runs = <int>scaled.shape[0], K = <int>scaled.shape[1], q = <int>scaled.shape[2]
        int64_t n = labels.shape[1], b, own = weights.shape[0] > 1
        int step = product_rows(n, block, runs * K, q), r
        int64_t pieces = (block + step - 1) // step
        size_t size = <size_t>step * (runs * K + 2) * sizeof(floating), rest = <size_t>step * 5 * sizeof(double)
        Unseen *unseen = NULL
        char *work = NULL
    size = (size + 7) // 8 * 8
    try:
        unseen = <Unseen*>reserved(runs * sizeof(Unseen))
        work = <char*>reserved(n_threads * (size + rest))
        for r in range(runs):
            unseen[r] = Unseen(&starts[r * K], &columns[0], &weights[r * own, 0], 0)
            unseen[r].total = observed_weight_double(&weights[r * own, 0], &weights[r * own, 0], q // 2)
        for b in prange(count_pieces(n, block, step), nogil=True, num_threads=n_threads, schedule="static", chunksize=1):
            assign_missing_piece(&X[0], piece_at(b, pieces, step, n, q, block), q, runs, K, &scaled[0, 0, 0], unseen,
                                 &norms[0, 0], &scale[0, 0], own * n, n,
                                 <floating*>(work + threadid() * (size + rest)),
                                 <double*>(work + threadid() * (size + rest) + size), &labels[0, 0], &costs[0, 0])
    finally:
        free(unseen)
        free(work)


cdef void assign_missing_piece(const floating *x, Piece piece, int q, int runs, int K, const floating *scaled,
                               const Unseen *unseen, const floating *norms, const double *scale, int64_t own,
                               int64_t n, floating *work, double *room, int32_t *labels,
                               floating *costs) noexcept nogil:
    cdef int r
    cdef int64_t at
    cdef floating *best = work + <size_t>piece.rows * runs * K
    cdef floating *product
    x += piece.offset
    multiply(x, piece, q, runs * K, scaled, work)
    for r in range(runs):
        product = work + <size_t>r * K * piece.rows
        at = r * own + piece.first
        if unseen[r].starts[0] < unseen[r].starts[K]:
            assign_in_part(x, piece.stride, piece.rows, q // 2, K, product, scaled + <size_t>r * K * q, unseen[r],
                           norms + at, scale + at, room, labels + r * n + piece.first, costs + r * n + piece.first)
        elif floating is float:
            nearest_float(product, NULL, K, piece.rows, best, best + piece.rows)
            store_scaled_float(best, best + piece.rows, norms + at, scale + at, piece.rows, labels + r * n + piece.first, costs + r * n + piece.first)
        else:
            nearest_double(product, NULL, K, piece.rows, best, best + piece.rows)
            store_scaled_double(best, best + piece.rows, norms + at, scale + at, piece.rows, labels + r * n + piece.first, costs + r * n + piece.first)


cdef void assign_in_part(const floating *x, int64_t rows, int part, int64_t q, int K, const floating *product,
                         const floating *scaled, Unseen unseen, const floating *norms, const double *scale, double *room,
                         int32_t *labels, floating *costs) noexcept nogil:
    """Nearest of centers that are not observed in all features, for cases of a block.

    Products and norms are over all features: what those add that a center lacks is taken out again.
    """
    cdef:
        int i, k, lost
        int64_t u, j
        double *taken = room
        double *left = room + part
        double *sums = room + 2 * part
        double *best = room + 3 * part
        double *arg = room + 4 * part
    for i in range(part):
        best[i] = HUGE_VAL
        arg[i] = 0
    for k in range(K):
        for i in range(part):
            taken[i] = 0
            left[i] = 1
        for u in range(unseen.starts[k], unseen.starts[k + 1]):
            j = unseen.columns[u]
            if floating is float:
                take_feature_float(x + j * rows, x + (q + j) * rows, unseen.weights[j], unseen.total, scale, part, taken, left)
            else:
                take_feature_double(x + j * rows, x + (q + j) * rows, unseen.weights[j], unseen.total, scale, part, taken, left)
        if floating is float:
            lost = take_out_float(product + k * part, norms, taken, part, sums)
        else:
            lost = take_out_double(product + k * part, norms, taken, part, sums)
        for i in range(part if lost else 0):
            if taken[i] > CANCELLED * fabs(sums[i]):
                sums[i] = sum_without(x + i, rows, q, unseen, k, scaled + 2 * k * q)
        nearer(sums, scale, left, k, part, best, arg)
    for i in range(part):
        labels[i] = <int32_t>arg[i]
        costs[i] = 0 if best[i] == HUGE_VAL else <floating>best[i]


cdef inline double sum_without(const floating *x, int64_t rows, int64_t q, Unseen unseen, int k,
                               const floating *scaled) noexcept nogil:
    cdef int64_t first = unseen.starts[k], some = unseen.starts[k + 1] - first
    if floating is float:
        return sum_without_float(x, rows, q, unseen.weights, scaled, unseen.columns + first, some)
    else:
        return sum_without_double(x, rows, q, unseen.weights, scaled, unseen.columns + first, some)


cdef inline int64_t room_of(int64_t run, int64_t runs, int threads) noexcept nogil:
    """Which part of the work space a run has: its own, or that of its thread where there are more runs."""
    return run if runs <= threads else threadid()


def trim(const int32_t[:, ::1] labels, const floating[:, ::1] costs, int64_t m, int n_threads,
         int32_t[:, ::1] groups, double[::1] kept):
    """groups = labels, with -1 for the m cases of largest cost (the lower number first in a tie).

    kept = the sum of the other costs, for each run.
    """
    cdef:
        int64_t runs = labels.shape[0], n = labels.shape[1], r
        size_t size = n + 1
        int threads = n_threads if runs > 1 else 1  # all or one: OpenMP ends threads that a smaller team leaves out
        floating *work = <floating*>reserved(min(<int64_t>threads, runs) * size * sizeof(floating))
    for r in prange(runs, nogil=True, num_threads=threads, schedule="dynamic"):
        if floating is float:
            kept[r] = trim_run_float(&labels[r, 0], &costs[r, 0], n, m, work + room_of(r, runs, threads) * size, &groups[r, 0])
        else:
            kept[r] = trim_run_double(&labels[r, 0], &costs[r, 0], n, m, work + room_of(r, runs, threads) * size, &groups[r, 0])
    free(work)


def trim_masses(const int32_t[:, ::1] labels, const floating[:, ::1] costs, const double[::1] masses, double m,
                int n_threads, int32_t[:, ::1] groups, double[::1] kept, int64_t[::1] cut, double[::1] left):
    """The same by mass: cases go, the largest cost first, until the mass m is gone.

    The last one may go in part and keeps its label: cut = its number, or -1, and left = what is kept of its mass.
    kept = the sum of masses times costs of what is kept, for each run.
    """
    cdef:
        int64_t runs = labels.shape[0], n = labels.shape[1], r
        size_t size = trim_masses_room_float(n) if floating is float else trim_masses_room_double(n)
        int threads = n_threads if runs > 1 else 1  # all or one: OpenMP ends threads that a smaller team leaves out
        char *work = <char*>reserved(min(<int64_t>threads, runs) * size)
    for r in prange(runs, nogil=True, num_threads=threads, schedule="dynamic"):
        if floating is float:
            kept[r] = trim_masses_run_float(&labels[r, 0], &costs[r, 0], &masses[0], n, m, work + room_of(r, runs, threads) * size, &groups[r, 0], &cut[r], &left[r])
        else:
            kept[r] = trim_masses_run_double(&labels[r, 0], &costs[r, 0], &masses[0], n, m, work + room_of(r, runs, threads) * size, &groups[r, 0], &cut[r], &left[r])
    free(work)


def shift_sums(const floating[::1] X, int block, const double[::1] location, double factor,
               const int32_t[:, ::1] before, const int32_t[:, ::1] after, int n_threads,
               double[:, :, ::1] totals, double[:, ::1] counts, int64_t[::1] moved):
    """Bring totals and counts of each group from the grouping ``before`` to ``after``.

    Totals are of (x - location) * factor. Only the cases that changed are read. moved = their number, for each run.
    Where totals have twice as many columns as X, they are of observed cells, and then of marks: how many there are.
    """
    shift(X, block, location, factor, NULL, 0, before, after, n_threads, totals, counts, moved)


def shift_masses(const floating[::1] X, int block, const double[::1] location, double factor,
                 const double[:, ::1] masses, const int32_t[:, ::1] before, const int32_t[:, ::1] after,
                 const int64_t[:, ::1] cut_before, const double[:, ::1] left_before,
                 const int64_t[:, ::1] cut_after, const double[:, ::1] left_after,
                 int n_threads, double[:, :, ::1] totals, double[:, ::1] counts, int64_t[::1] moved):
    """The same where each case counts with its mass; counts are masses too. masses: one row or one a run.

    Of the cases with the numbers cut (runs, slots), -1 for none, left is what is kept of the mass, in either grouping.
    A run in which another part of a case is kept counts one more case in moved.
    """
    cdef:
        int64_t runs = before.shape[0], n = before.shape[1], p = location.shape[0], width = totals.shape[2], r
        int64_t own = n if masses.shape[0] > 1 else 0
        int64_t gathered = p if block > 1 else 0
        floating *row = <floating*>reserved(gathered * sizeof(floating))
        Parts old, new
    shift(X, block, location, factor, &masses[0, 0], own, before, after, n_threads, totals, counts, moved)
    with nogil:
        for r in range(runs):
            old = Parts(&cut_before[r, 0], &left_before[r, 0], cut_before.shape[1])
            new = Parts(&cut_after[r, 0], &left_after[r, 0], cut_after.shape[1])
            moved[r] += parts_differ(old, new)
            move_parts(&X[0], n, block, &location[0], factor, 1, &masses[0, 0] + r * own, &before[r, 0], old, p, width,
                       row, &totals[r, 0, 0], &counts[r, 0])
            move_parts(&X[0], n, block, &location[0], factor, -1, &masses[0, 0] + r * own, &after[r, 0], new, p, width,
                       row, &totals[r, 0, 0], &counts[r, 0])
    free(row)


cdef struct Parts:
    # Cases that are trimmed in part, and what is kept of them.
    const int64_t *cut
    const double *left
    int64_t slots


cdef bint parts_differ(Parts old, Parts new) noexcept nogil:
    cdef int64_t s, used = 0
    if old.slots != new.slots:
        for s in range(old.slots):
            used += old.cut[s] >= 0
        for s in range(new.slots):
            used -= new.cut[s] >= 0
        return used != 0
    for s in range(old.slots):
        if old.cut[s] != new.cut[s] or (old.cut[s] >= 0 and fabs(old.left[s] - new.left[s]) > SAME_PART):
            return True
    return False


cdef void move_parts(const floating *x, int64_t n, int block, const double *location, double factor, int sign,
                     const double *mass, const int32_t *groups, Parts parts, int64_t p, int64_t width, floating *row,
                     double *totals, double *counts) noexcept nogil:
    """Put back into the sums what is trimmed of cases, or with the sign -1 take it out."""
    cdef int64_t s, i
    cdef double gone
    for s in range(parts.slots):
        i = parts.cut[s]
        if i < 0 or groups[i] < 0:
            continue
        gone = sign * (mass[i] - parts.left[s])
        move_row(row_of(x, i, n, p, block, row), location, factor, gone, p, width, totals + groups[i] * width)
        counts[groups[i]] += gone


cdef shift(const floating[::1] X, int block, const double[::1] location, double factor, const double *masses, int64_t own,
           const int32_t[:, ::1] before, const int32_t[:, ::1] after, int n_threads,
           double[:, :, ::1] totals, double[:, ::1] counts, int64_t[::1] moved):
    cdef:
        int64_t runs = before.shape[0], n = before.shape[1], size = totals.shape[1] * (totals.shape[2] + 1)
        int64_t K = totals.shape[1], r, s
        int stripes = <int>max(1, min(<int64_t>MAX_STRIPES, n // max(<int64_t>STRIPE_ROWS, STRIPE_CASES * K)))
        int64_t rows = stripe_rows(n, stripes), p = location.shape[0], width = totals.shape[2]
        const double *mass
        const double *place = &location[0] if width > p else place_of(location, factor)
        int64_t gathered = block * p if block > 1 else 0  # room for the cases of a block, row by row
        int64_t *changed = NULL
        double *partial = NULL
        char *touched = NULL  # which groups a stripe has summed
        floating *work = NULL
    if block != 1 and block != TABLE_BLOCK:
        raise ValueError(f"block={block} must be 1 or {TABLE_BLOCK}.")
    try:
        changed = <int64_t*>reserved(runs * stripes * sizeof(int64_t))
        work = <floating*>reserved(<size_t>n_threads * gathered * sizeof(floating))
        if stripes > 1:
            partial = <double*>reserved(<size_t>runs * stripes * size * sizeof(double))
            touched = <char*>reserved(<size_t>runs * stripes * K)
        for r in prange(runs * stripes, nogil=True, num_threads=n_threads, schedule="dynamic"):
            mass = NULL if masses == NULL else masses + r // stripes * own
            if stripes == 1:
                changed[r] = shift_stripe(&X[0], n, block, place, factor, mass, &before[r, 0], &after[r, 0], 0, n,
                                          p, width, work + threadid() * gathered, NULL, &totals[r, 0, 0], &counts[r, 0])
            else:
                memset(touched + r * K, 0, K)
                changed[r] = shift_stripe(&X[0], n, block, place, factor, mass, &before[r // stripes, 0],
                                          &after[r // stripes, 0], min(n, (r % stripes) * rows),
                                          min(n, (r % stripes + 1) * rows), p, width, work + threadid() * gathered,
                                          touched + r * K, partial + r * size, partial + r * size + K * width)
        if stripes > 1:
            for r in prange(runs, nogil=True, num_threads=n_threads, schedule="static"):
                add_stripes(partial + r * stripes * size, touched + r * stripes * K, stripes, K, width, &totals[r, 0, 0],
                            &counts[r, 0])
        for r in range(runs):
            moved[r] = 0
            for s in range(stripes):
                moved[r] += changed[r * stripes + s]
    finally:
        free(changed)
        free(work)
        free(touched)
        free(partial)


cdef const double* place_of(const double[::1] location, double factor) noexcept:
    """The location, or NULL where cases lie in place already, as those of a table do."""
    cdef int64_t j
    for j in range(location.shape[0] if factor == 1 else 0):
        if location[j] != 0:
            return &location[0]
    return NULL if factor == 1 else &location[0]


cdef int64_t stripe_rows(int64_t n, int stripes) noexcept nogil:
    """Cases in a stripe: whole blocks."""
    cdef int64_t rows = (n + stripes - 1) // stripes
    return (rows + TABLE_BLOCK - 1) // TABLE_BLOCK * TABLE_BLOCK


cdef void add_stripes(const double *partial, const char *touched, int stripes, int64_t K, int64_t width, double *totals,
                      double *counts) noexcept nogil:
    """Add the partial sums of the stripes, in their order."""
    cdef int64_t s, j, k
    for s in range(stripes):
        for k in range(K):
            if touched[s * K + k]:
                for j in range(width):
                    totals[k * width + j] += partial[k * width + j]
                counts[k] += partial[K * width + k]
        partial += K * (width + 1)


cdef int64_t shift_stripe(const floating *x, int64_t n, int block, const double *location,
                          double factor, const double *mass, const int32_t *before, const int32_t *after,
                          int64_t start, int64_t stop, int64_t p, int64_t width, floating *rows, char *touched,
                          double *totals, double *counts) noexcept nogil:
    """Sums over the cases start .. stop; start lies at the beginning of a block.

    ``rows`` is room for the cases of a block. Where totals are partial ones, ``touched`` marks the groups that have
    some: the others hold nothing.
    """
    cdef int64_t i, end, changed = 0, here
    cdef double own = 1
    cdef const floating *case_i
    while start < stop:
        end = min(start + max(block, TABLE_BLOCK), stop)
        here = count_changes(before, after, start, end)
        changed += here
        if block > 1 and here * 4 > block:
            unblock(x + start * p, end - start, p, rows)
        for i in range(start, end if here else start):
            if before[i] == after[i]:
                continue
            if block > 1 and here * 4 > block:
                case_i = rows + (i - start) * p
            else:
                case_i = row_of(x, i, n, p, block, rows)
            if mass != NULL:
                own = mass[i]
            if before[i] >= 0:
                begin_group(touched, before[i], width, totals, counts)
                move_row(case_i, location, factor, -own, p, width, totals + before[i] * width)
                counts[before[i]] -= own
            if after[i] >= 0:
                begin_group(touched, after[i], width, totals, counts)
                move_row(case_i, location, factor, own, p, width, totals + after[i] * width)
                counts[after[i]] += own
        start = end
    return changed


cdef inline void begin_group(char *touched, int64_t k, int64_t width, double *totals, double *counts) noexcept nogil:
    """Set the partial sums of a group to 0, the first time that it is met."""
    if touched != NULL and not touched[k]:
        memset(totals + k * width, 0, width * sizeof(double))
        counts[k] = 0
        touched[k] = 1


cdef inline int64_t count_changes(const int32_t *before, const int32_t *after, int64_t start,
                                  int64_t stop) noexcept nogil:
    cdef int64_t i, changed = 0
    for i in range(start, stop):
        changed += before[i] != after[i]
    return changed


cdef inline const floating* row_of(const floating *x, int64_t i, int64_t n, int64_t q, int block,
                                   floating *row) noexcept nogil:
    """Case i in a row: where it lies, or gathered into ``row``."""
    cdef Block part
    cdef int64_t j
    if block == 1:
        return x + i * q
    part = block_at(i // block, n, q, block)
    x += part.offset + i - part.first
    for j in range(q):
        row[j] = x[j * part.rows]
    return row


cdef inline void move_row(const floating *x, const double *location, double factor, double mass, int64_t p,
                          int64_t width, double *total) noexcept nogil:
    if floating is float:
        if location == NULL:
            add_plain_row_float(x, mass, <int>p, total)
        elif width == p:
            add_row_float(x, location, factor * mass, <int>p, total)
        else:
            add_observed_row_float(x, location, factor * mass, mass, <int>p, total)
    else:
        if location == NULL:
            add_plain_row_double(x, mass, <int>p, total)
        elif width == p:
            add_row_double(x, location, factor * mass, <int>p, total)
        else:
            add_observed_row_double(x, location, factor * mass, mass, <int>p, total)


def own_distances(const floating[:, ::1] X, const double[::1] location, double factor,
                  const double[:, ::1] weights, const int32_t[:, ::1] labels,
                  const double[:, :, ::1] centers, int n_threads, double[:, ::1] out):
    """out = weighted squared distance of (X - location) * factor to the center its label names.

    weights: one row for all runs or one a run.
    """
    cdef int64_t runs = labels.shape[0], n = labels.shape[1], i, r
    cdef int own = weights.shape[0] > 1
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        for r in range(runs):
            out[r, i] = framed_distance(&X[i, 0], &location[0], factor, &centers[r, labels[r, i], 0],
                                        &weights[r * own, 0], X.shape[1])


cdef inline double framed_distance(const floating *x, const double *location, double factor,
                                   const double *center, const double *weights,
                                   int64_t p) noexcept nogil:
    if floating is float:
        return framed_distance_float(x, location, factor, center, weights, <int>p)
    else:
        return framed_distance_double(x, location, factor, center, weights, <int>p)


def own_distances_missing(const floating[:, ::1] X, const double[::1] location, double factor,
                          const double[:, ::1] weights, const int32_t[:, ::1] labels,
                          const double[:, :, ::1] centers, int n_threads, double[:, ::1] out):
    """The same where NaN marks what is not observed, of cases or centers.

    Distances are over features that are observed in both, scaled up by all weight / observed weight;
    infinite where nothing is observed.
    """
    cdef:
        int64_t runs = labels.shape[0], n = labels.shape[1], i, r
        int own = weights.shape[0] > 1, p = <int>X.shape[1]
        double *totals = <double*>reserved(weights.shape[0] * sizeof(double))
    for r in range(weights.shape[0]):
        totals[r] = observed_weight_double(&weights[r, 0], &weights[r, 0], p)
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        for r in range(runs):
            if floating is float:
                out[r, i] = observed_distance_float(&X[i, 0], &location[0], factor, &centers[r, labels[r, i], 0], &weights[r * own, 0], totals[r * own], p)
            else:
                out[r, i] = observed_distance_double(&X[i, 0], &location[0], factor, &centers[r, labels[r, i], 0], &weights[r * own, 0], totals[r * own], p)
    free(totals)


def missing_factors(const floating[:, ::1] X, const double[:, ::1] weights, int n_threads, double[:, ::1] out):
    """out[r, i] = all weight / the weight of what is not NaN in case i; 0 if that has none."""
    cdef int64_t n = X.shape[0], i, r
    cdef int p = <int>X.shape[1]
    cdef double total
    for r in range(weights.shape[0]):
        total = observed_weight_double(&weights[r, 0], &weights[r, 0], p)
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
            if floating is float:
                out[r, i] = missing_factor_float(&X[i, 0], &weights[r, 0], total, p)
            else:
                out[r, i] = missing_factor_double(&X[i, 0], &weights[r, 0], total, p)


def row_norms(const floating[::1] X, int block, const double[:, ::1] weights, int n_threads,
              real[:, ::1] out):
    """out[r, i] = sum_j weights[r, j] x_ij^2 for the cases of a table."""
    cdef int64_t n = out.shape[1], q = weights.shape[1], b, r
    cdef Block part
    if block > TABLE_BLOCK:
        raise ValueError(f"block={block} must be at most {TABLE_BLOCK}.")
    for b in prange((n + block - 1) // block, nogil=True, num_threads=n_threads, schedule="static"):
        for r in range(weights.shape[0]):
            part = block_at(b, n, q, block)
            norms_of_block(&X[part.offset], part.rows, q, &weights[r, 0], &out[r, part.first])


cdef void norms_of_block(const floating *x, int64_t rows, int64_t q, const double *weights,
                         real *out) noexcept nogil:
    cdef double sums[TABLE_BLOCK]
    cdef int64_t i, j
    for i in range(rows):
        sums[i] = 0
    for j in range(q):
        if weights[j] == 0:
            continue
        if floating is float:
            add_squares_float(x + j * rows, weights[j], rows, sums)
        else:
            add_squares_double(x + j * rows, weights[j], rows, sums)
    for i in range(rows):
        out[i] = <real>sums[i]


def single_moves(const floating[::1] X, int block, const double[:, ::1] weights, int max_rounds,
                 int n_threads, int32_t[:, ::1] groups, double[:, :, ::1] totals,
                 double[:, ::1] counts, int64_t[::1] moves):
    """Move or exchange one case at a time while the within sum of squares falls, for every run.

    moves = the number made, for each run.
    """
    run_moves(X, block, weights, weights, NULL, 0, max_rounds, n_threads, groups, totals, counts, moves)


def single_moves_missing(const floating[::1] X, int block, const double[:, ::1] weights,
                       const double[:, ::1] scale, int max_rounds, int n_threads,
                       int32_t[:, ::1] groups, double[:, :, ::1] totals, double[:, ::1] counts,
                       int64_t[::1] moves):
    """The same for a table of values and marks (n, 2q).

    scale = what distances are multiplied by for the missing cells of each case; one row, or one a run.
    """
    run_moves(X, block, weights, scale, NULL, 1, max_rounds, n_threads, groups, totals, counts, moves)


def move_masses(const floating[::1] X, int block, const double[:, ::1] weights, const double[::1] masses,
                int max_rounds, int n_threads, int32_t[:, ::1] groups, double[:, :, ::1] totals,
                double[:, ::1] counts, int64_t[::1] moves):
    """The same where each case counts with its mass; only cases of the same mass are exchanged."""
    run_moves(X, block, weights, weights, &masses[0], 0, max_rounds, n_threads, groups, totals, counts, moves)


def move_masses_missing(const floating[::1] X, int block, const double[:, ::1] weights,
                        const double[:, ::1] scale, const double[::1] masses, int max_rounds,
                        int n_threads, int32_t[:, ::1] groups, double[:, :, ::1] totals,
                        double[:, ::1] counts, int64_t[::1] moves):
    """The same for a table of values and marks."""
    run_moves(X, block, weights, scale, &masses[0], 1, max_rounds, n_threads, groups, totals, counts, moves)


cdef run_moves(const floating[::1] X, int block, const double[:, ::1] weights,
               const double[:, ::1] scale, const double *mass, int missing, int max_rounds, int n_threads,
               int32_t[:, ::1] groups, double[:, :, ::1] totals, double[:, ::1] counts,
               int64_t[::1] moves):
    cdef:
        int64_t runs = groups.shape[0], n = groups.shape[1], r
        int K = <int>totals.shape[1], q = <int>weights.shape[1], own = weights.shape[0] > 1
        int width = <int>totals.shape[2]
        floating *copy = NULL
        const floating *rows = &X[0]
        size_t size = work_size_missing_float(n, q, K) if missing else work_size_float(n, q, K)
        int threads = n_threads if runs > 1 else 1  # all or one: OpenMP ends threads that a smaller team leaves out
        double *work = NULL
    try:
        work = <double*>reserved(min(<int64_t>threads, runs) * size * sizeof(double))
        if block > 1:
            copy = <floating*>reserved(<size_t>n * width * sizeof(floating))
            for r in range((n + block - 1) // block):
                unblock(&X[r * block * width], min(<int64_t>block, n - r * block), width, copy + r * block * width)
            rows = copy
        for r in prange(runs, nogil=True, num_threads=threads, schedule="dynamic"):
            moves[r] = moves_of_run(rows, &weights[r * own, 0], &scale[r * own * missing, 0], mass, missing, n, q, K,
                                    max_rounds, &groups[r, 0], &totals[r, 0, 0], &counts[r, 0],
                                    work + room_of(r, runs, threads) * size)
    finally:
        free(copy)
        free(work)


cdef inline int64_t moves_of_run(const floating *rows, const double *weights, const double *scale,
                                 const double *mass, int missing, int64_t n, int q, int K, int max_rounds, int32_t *groups,
                                 double *totals, double *counts, double *work) noexcept nogil:
    if floating is float:
        if missing:
            return single_moves_missing_float(rows, weights, scale, mass, n, q, K, max_rounds, groups, totals, counts, <Gemm_float>sgemm, work)
        return single_moves_float(rows, weights, scale, mass, n, q, K, max_rounds, groups, totals, counts, <Gemm_float>sgemm, work)
    else:
        if missing:
            return single_moves_missing_double(rows, weights, scale, mass, n, q, K, max_rounds, groups, totals, counts, <Gemm_double>dgemm, work)
        return single_moves_double(rows, weights, scale, mass, n, q, K, max_rounds, groups, totals, counts, <Gemm_double>dgemm, work)


cdef void unblock(const floating *x, int64_t n, int64_t q, floating *rows) noexcept nogil:
    """Lay the cases of one block out row by row, 16 columns at a time."""
    cdef int64_t i, j, first = 0, last
    while first < q:
        last = min(first + 16, q)
        for i in range(n):
            for j in range(first, last):
                rows[i * q + j] = x[j * n + i]
        first = last


# ---- Cells whose squared error is bounded

cdef enum:
    # Features that a thread sums, or ranks, at once: a few lines of memory.
    CELL_COLUMNS = 64
    MEDIAN_COLUMNS = 8


cdef inline void frame_cells(const floating *x, const int64_t *columns, const double *location, double factor,
                             int64_t q, int64_t stride, double *out) noexcept nogil:
    """Some cells of a case in the frame, so far apart in ``out``."""
    cdef int64_t j, place
    for j in range(q):
        place = columns[j]
        out[j * stride] = (x[place] - location[place]) * factor


def nearest_bounded(const floating[:, ::1] X, const double[::1] location, double factor,
                    const int64_t[::1] columns, const double[::1] weights, const double[::1] limits,
                    const double[:, ::1] centers, int n_threads, int32_t[::1] labels, double[::1] costs):
    """labels, costs (n,) = the nearest of the centers (K, q), and the bounded distance to it.

    ``columns`` are the features that are looked at; weights, limits of squares and centers are theirs.
    """
    cdef:
        int64_t n = X.shape[0], q = columns.shape[0], size = (q + 3) * CELL_LANES, b
        double total = observed_weight_double(&weights[0], &weights[0], <int>q) if q else 0
        double *work = <double*>reserved(n_threads * size * sizeof(double))
    for b in prange((n + CELL_LANES - 1) // CELL_LANES, nogil=True, num_threads=n_threads, schedule="static"):
        nearest_of_lanes(X, location, factor, columns, weights, limits, total, centers, b * CELL_LANES,
                         work + threadid() * size, labels, costs)
    free(work)


cdef void nearest_of_lanes(const floating[:, ::1] X, const double[::1] location, double factor,
                           const int64_t[::1] columns, const double[::1] weights, const double[::1] limits,
                           double total, const double[:, ::1] centers, int64_t first, double *work,
                           int32_t[::1] labels, double[::1] costs) noexcept nogil:
    cdef:
        int64_t rows = min(<int64_t>CELL_LANES, X.shape[0] - first), q = columns.shape[0], i, k
        double *best = work + q * CELL_LANES
        double *arg = best + CELL_LANES
        double *found = arg + CELL_LANES
    for i in range(CELL_LANES):
        best[i], arg[i] = HUGE_VAL, 0
        if q:
            frame_cells(&X[first + min(i, rows - 1), 0], &columns[0], &location[0], factor, q, CELL_LANES, work + i)
    for k in range(centers.shape[0] if q else 0):
        bounded_costs(work, &centers[k, 0], &weights[0], &limits[0], total, <int>q, found)
        keep_nearest(found, <double>k, best, arg)
    for i in range(rows):
        labels[first + i], costs[first + i] = <int32_t>arg[i], best[i]


def bounded_distances(const floating[:, ::1] X, const double[::1] location, double factor,
                      const int64_t[::1] columns, const double[:, ::1] weights, const double[::1] limits,
                      const int32_t[:, ::1] labels, const double[:, :, ::1] centers, int n_threads,
                      double[:, ::1] out):
    """out (runs, n) = weighted bounded distance to the center that a label names.

    weights: one row for all runs or one a run.
    """
    cdef:
        int64_t n = X.shape[0], q = columns.shape[0], runs = labels.shape[0], i, r
        int own = weights.shape[0] > 1
        double *totals = <double*>reserved(weights.shape[0] * sizeof(double))
        double *work = <double*>reserved(n_threads * q * sizeof(double))
    if q == 0:
        out[:, :] = HUGE_VAL
    for r in range(weights.shape[0] if q else 0):
        totals[r] = observed_weight_double(&weights[r, 0], &weights[r, 0], <int>q)
    for i in prange(n if q else 0, nogil=True, num_threads=n_threads, schedule="static"):
        frame_cells(&X[i, 0], &columns[0], &location[0], factor, q, 1, work + threadid() * q)
        for r in range(runs):
            out[r, i] = bounded_distance(work + threadid() * q, &centers[r, labels[r, i], 0], &weights[r * own, 0],
                                         &limits[0], totals[r * own], <int>q)
    free(totals)
    free(work)


def bounded_sums(const floating[:, ::1] X, const double[::1] location, double factor, const int64_t[::1] columns,
                 const double[::1] limits, const double[:, ::1] shares, const int32_t[:, ::1] groups,
                 const double[:, :, ::1] centers, int n_threads, double[:, :, ::1] totals,
                 double[:, ::1] counts, double[:, ::1] within):
    """Sum what is not flagged, by group (runs, n) and feature; outputs begin at 0.

    totals (runs, K, 2q) of values, and then of their number; counts (runs, K) of the cases; within
    (runs, q) of the bounded squared errors. Each case counts its share (1 or runs, n).
    """
    cdef:
        int64_t n = X.shape[0], q = columns.shape[0], runs = groups.shape[0], b, i, r
        int own = shares.shape[0] > 1
    # A thread has some of the features, of all cases: no sums have to be joined.
    for b in prange((q + CELL_COLUMNS - 1) // CELL_COLUMNS, nogil=True, num_threads=n_threads, schedule="static"):
        sum_columns(X, location, factor, columns, limits, shares, own, groups, centers, b * CELL_COLUMNS, totals, within)
    for r in range(runs):
        for i in range(n):
            if groups[r, i] >= 0:
                counts[r, groups[r, i]] += shares[r * own, i]


cdef void sum_columns(const floating[:, ::1] X, const double[::1] location, double factor,
                      const int64_t[::1] columns, const double[::1] limits, const double[:, ::1] shares, int own,
                      const int32_t[:, ::1] groups, const double[:, :, ::1] centers, int64_t first,
                      double[:, :, ::1] totals, double[:, ::1] within) noexcept nogil:
    cdef:
        int64_t q = columns.shape[0], here = min(<int64_t>CELL_COLUMNS, q - first), i, r
        int32_t k
        double[CELL_COLUMNS] cells
    for i in range(X.shape[0]):
        frame_cells(&X[i, 0], &columns[first], &location[0], factor, here, 1, cells)
        for r in range(groups.shape[0]):
            k = groups[r, i]
            if k >= 0:
                add_bounded(cells, &centers[r, k, first], &limits[first], shares[r * own, i], <int>here,
                            &totals[r, k, first], &totals[r, k, q + first], &within[r, first])


def lower_medians(const floating[:, ::1] X, const double[::1] location, double factor,
                  const int64_t[::1] columns, const int64_t[::1] order, const int64_t[::1] starts,
                  int n_threads, double[:, ::1] out):
    """out (K, q) = the lower median of the observed cells of cases order[starts[k]:starts[k+1]].

    NaN where there is none.
    """
    cdef:
        int64_t q = columns.shape[0], size = max(<int64_t>1, order.shape[0]) * MEDIAN_COLUMNS, b
        double *work = <double*>reserved(n_threads * size * sizeof(double))
    for b in prange((q + MEDIAN_COLUMNS - 1) // MEDIAN_COLUMNS, nogil=True, num_threads=n_threads, schedule="static"):
        medians_of_columns(X, location, factor, columns, order, starts, b * MEDIAN_COLUMNS, work + threadid() * size, out)
    free(work)


cdef void medians_of_columns(const floating[:, ::1] X, const double[::1] location, double factor,
                             const int64_t[::1] columns, const int64_t[::1] order, const int64_t[::1] starts,
                             int64_t first, double *work, double[:, ::1] out) noexcept nogil:
    cdef:
        int64_t here = min(<int64_t>MEDIAN_COLUMNS, columns.shape[0] - first), k, i, j, m
        double[MEDIAN_COLUMNS] cells
        int64_t[MEDIAN_COLUMNS] found
        int64_t room = order.shape[0]
    for k in range(starts.shape[0] - 1):
        for j in range(here):
            found[j] = 0
        for i in range(starts[k], starts[k + 1]):
            frame_cells(&X[order[i], 0], &columns[first], &location[0], factor, here, 1, cells)
            for j in range(here):
                if cells[j] == cells[j]:
                    work[j * room + found[j]] = cells[j]
                    found[j] += 1
        for j in range(here):
            out[k, first + j] = lower_median(work + j * room, found[j])
