# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""The compiled passes. Each has a twin of the same name and signature in ``passes_numpy``.

Inputs are ``const`` and come first, outputs last. Every pass gives the same bits for any number of
threads: work is cut into fixed pieces, and partial sums are added in a fixed order.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport HUGE_VAL, NAN, fabs
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, sgemm


cdef extern from "kernels.h":
    const int RSKC_HAS_OPENMP
    const double CANCELLED "RSKC_CANCELLED"
    const double NO_MASS "RSKC_NO_MASS"
    const int RSKC_HAS_PRODUCTS
    void products_float(const float*, int64_t, int, int64_t, int, const float*, float*) noexcept nogil
    void products_double(const double*, int64_t, int, int64_t, int, const double*, double*) noexcept nogil
    void products_mixed(const float*, int64_t, int, int64_t, int, const double*, double*) noexcept nogil
    void products_plain(const float*, int64_t, int, int64_t, int, const double*, double*) noexcept nogil
    int rskc_max_threads() noexcept nogil
    void rskc_prefetch(const void*, size_t) noexcept nogil
    void nearest_float(const float*, const float*, int, int, const float*, const double*, float*, int32_t*, float*) noexcept nogil
    void nearest_double(const double*, const double*, int, int, const double*, const double*, double*, int32_t*, double*) noexcept nogil
    void take_feature_float(const float*, const float*, double, double, const double*, int, double*, double*) noexcept nogil
    void take_feature_double(const double*, const double*, double, double, const double*, int, double*, double*) noexcept nogil
    int take_out_float(const float*, const float*, const double*, int, double*) noexcept nogil
    int take_out_double(const double*, const double*, const double*, int, double*) noexcept nogil
    void nearer(const double*, const double*, const double*, double, int, double*, double*) noexcept nogil
    int scale_observed_center_float(const double*, const double*, int, float*) noexcept nogil
    int scale_observed_center_double(const double*, const double*, int, double*) noexcept nogil
    double scale_center_float(const double*, const double*, int, float*) noexcept nogil
    double scale_center_double(const double*, const double*, int, double*) noexcept nogil
    void center_row_float(const float*, const int64_t*, const double*, double, const double*, int64_t, int, double*) noexcept nogil
    void move_row_float(const float*, const double*, double, double, int, int64_t, double*) noexcept nogil
    double own_distance_float(const float*, const double*, double, const double*, const double*, const double*, int) noexcept nogil
    void center_row_double(const double*, const int64_t*, const double*, double, const double*, int64_t, int, double*) noexcept nogil
    void move_row_double(const double*, const double*, double, double, int, int64_t, double*) noexcept nogil
    double own_distance_double(const double*, const double*, double, const double*, const double*, const double*, int) noexcept nogil
    double observed_weight_double(const double*, const double*, int) noexcept nogil
    double missing_factor_float(const float*, const double*, double, int) noexcept nogil
    double missing_factor_double(const double*, const double*, double, int) noexcept nogil
    void add_squares_float(const float*, double, int64_t, double*) noexcept nogil
    void add_squares_double(const double*, double, int64_t, double*) noexcept nogil
    double trim_run_float(const int32_t*, const float*, const double*, int64_t, double, void*, int32_t*, int64_t*, double*) noexcept nogil
    double trim_run_double(const int32_t*, const double*, const double*, int64_t, double, void*, int32_t*, int64_t*, double*) noexcept nogil
    size_t trim_room(int64_t, int) noexcept nogil
    size_t moves_room(int64_t, int, int, int) noexcept nogil
    ctypedef void (*Gemm_float)(char*, char*, int*, int*, int*, float*, float*, int*, float*, int*, float*, float*, int*) noexcept nogil
    ctypedef void (*Gemm_double)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*, double*, int*) noexcept nogil
    int64_t moves_of_run_float(const float*, const double*, const double*, const double*, int64_t, int, int, int, int32_t*, double*, double*, Gemm_float, double*) noexcept nogil
    int64_t moves_of_run_double(const double*, const double*, const double*, const double*, int64_t, int, int, int, int32_t*, double*, double*, Gemm_double, double*) noexcept nogil

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
    # Products that are found together.
    PRODUCTS = 32768
    # The most multiplications that OpenBLAS makes without packing.
    SMALL_PRODUCT = 1000000
    ROWS_AT_ONCE = 16
    # The least number of cases in a product, and the least number of pieces where there are cases enough.
    LEAST_PRODUCT = 32
    FEWEST_PIECES = 4
    # From this number of pieces on, threads take the next that is free.
    MANY_PIECES = 256
    # Columns that are summed together where cases lie in blocks: their totals stay in the first cache.
    SUM_COLUMNS = 64
    # Cases of a stripe of sums: at least this many, and for each cluster. The sums of a stripe take room.
    STRIPE_ROWS = 2048
    STRIPE_CASES = 64
    MAX_STRIPES = 16

# Parts that differ by less are the same: sums of masses are rounded.
cdef double SAME_PART = 1e-9


# Whether the passes were built with OpenMP, and whether cases and centers are multiplied here and not by
# a BLAS: where the machine has AVX2 and FMA.
HAS_OPENMP, HAS_PRODUCTS = bool(RSKC_HAS_OPENMP), bool(RSKC_HAS_PRODUCTS)


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
                center_row_float(&X[block.first + start + i, 0], columns, location, factor, limits, q, width > q, work + i * width)
            else:
                center_row_double(&X[block.first + start + i, 0], columns, location, factor, limits, q, width > q, work + i * width)
        if block.rows == 1:  # row by row: a loop that the compiler vectorizes
            for j in range(width):
                out[j] = <real>work[j]
        else:
            for j in range(width):
                for i in range(rows):
                    out[j * block.rows + start + i] = <real>work[i * width + j]
        start += rows


def assign(const real[::1] X, int block, const double[:, ::1] weights, const double[:, :, ::1] centers,
           const floating[:, ::1] norms, const double[:, ::1] scale, int n_threads, int32_t[:, ::1] labels,
           floating[:, ::1] costs):
    """Nearest of the centers (runs, K, q) of every case of a table, for every run.

    Cells in single precision may be multiplied in double. norms = sum w x^2 of each case; one row for all runs or one
    a run, as weights. With scale (else None) the table has values and marks (n, 2q), a center is NaN in a feature of
    which it has no cell, and distances are multiplied by scale for the missing cells of each case. Label and cost are
    0 where scale is, and cost is too where no center is observed.
    """
    cdef:
        int runs = <int>centers.shape[0], K = <int>centers.shape[1], q = <int>centers.shape[2]
        int columns = runs * K, width = q if scale is None else 2 * q, step
        int64_t n = labels.shape[1], b, pieces, last
        const double *factors = NULL if scale is None else &scale[0, 0]
        Centers c = Centers(K, q, width, weights.shape[0] > 1, factors != NULL, &weights[0, 0])
        size_t size
        char *work
        char *end = <char*>64
    refuse_wide_cells(&X[0], &norms[0, 0])
    step = product_rows(n, block, columns, width)
    pieces, last = (block + step - 1) // step, count_pieces(n, block, step)
    size = piece_room(step, columns, sizeof(floating))
    lay_centers(&c, &end, runs, sizeof(floating))
    work = <char*>reserved(<size_t>end + n_threads * size)
    end = work + (64 - <size_t>work % 64) % 64
    lay_centers(&c, &end, runs, sizeof(floating))
    for b in range(runs):
        c.live[b] = b
    for b in prange(columns, nogil=True, num_threads=n_threads, schedule="static"):
        scale_center(c, b, &weights[b // K * c.own, 0], &centers[b // K, b % K, 0], <floating*>c.scaled, <floating*>c.constants)
    if last < MANY_PIECES:  # the same thread has the same cases each time, in its own cache
        for b in prange(last, nogil=True, num_threads=n_threads, schedule="static", chunksize=1):
            assign_piece(&X[0], piece_at(b, pieces, step, n, width, block), c, runs, &norms[0, 0], factors, n,
                         end + threadid() * size, &labels[0, 0], &costs[0, 0])
    else:
        for b in prange(last, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=8):
            if b % pieces == 0:
                prefetch_block(&X[0], b // pieces + 1, n, width, block)
            assign_piece(&X[0], piece_at(b, pieces, step, n, width, block), c, runs, &norms[0, 0], factors, n,
                         end + threadid() * size, &labels[0, 0], &costs[0, 0])
    free(work)


cdef struct Centers:
    # Centers of runs as products take them: -2 w c, and w c^2 in their sums or, where cells are missing, behind it.
    int K, q, width  # q columns have weights; a case has width numbers: values, and marks where cells are missing
    int64_t own  # 1 where weights, norms and scale have a row for each run
    bint missing
    const double *weights
    int64_t *live  # the runs whose centers these are
    char *scaled
    char *constants
    int64_t *unseen  # in how many features that have weight each center is NaN...
    int64_t *columns  # ... and in which


cdef void lay_centers(Centers *c, char **end, int64_t runs, size_t item) noexcept nogil:
    """Lay out the work space of the centers of some runs."""
    cdef size_t K = c.K
    c.live = <int64_t*>part_of(end, runs * sizeof(int64_t))
    c.scaled = part_of(end, runs * K * c.width * item)
    c.constants = part_of(end, runs * K * item)
    c.unseen = <int64_t*>part_of(end, runs * K * sizeof(int64_t) if c.missing else 0)
    c.columns = <int64_t*>part_of(end, runs * K * c.q * sizeof(int64_t) if c.missing else 0)


cdef inline char* part_of(char **end, size_t size) noexcept nogil:
    """Return where so many bytes begin; each such part begins a cache line."""
    cdef char *start = end[0]
    end[0] += (size + 63) // 64 * 64
    return start


cdef inline size_t piece_room(int64_t rows, int64_t columns, size_t item) noexcept nogil:
    """Bytes for the products of a piece with centers, the least of them, and sums without unseen features."""
    return (rows * ((columns + 2) * item + 5 * sizeof(double)) + 63) // 64 * 64


cdef void scale_center(Centers c, int64_t at, const double *weights, const double *center, floating *scaled,
                       floating *constants) noexcept nogil:
    """Lay out one center, in place ``at``."""
    cdef int64_t j, found = 0
    scaled += at * c.width
    if not c.missing:
        if floating is float:
            constants[at] = <float>scale_center_float(weights, center, c.q, scaled)
        else:
            constants[at] = scale_center_double(weights, center, c.q, scaled)
        return
    if floating is float:
        c.unseen[at] = scale_observed_center_float(weights, center, c.q, scaled)
    else:
        c.unseen[at] = scale_observed_center_double(weights, center, c.q, scaled)
    for j in range(c.q if c.unseen[at] else 0):
        if center[j] != center[j] and weights[j] > 0:
            c.columns[at * c.q + found] = j
            found += 1


cdef int product_rows(int64_t n, int block, int64_t columns, int64_t q) noexcept nogil:
    """Cases in one product: so many that the products stay in the second cache.

    BLAS, if that multiplies, packs more than a few. Few cases are cut into a few pieces, so that several
    threads have some each.
    """
    cdef int64_t rows = (PRODUCTS // columns if RSKC_HAS_PRODUCTS else SMALL_PRODUCT // (columns * q)) // 16 * 16
    if RSKC_HAS_PRODUCTS:
        rows = min(<int64_t>block, max(<int64_t>LEAST_PRODUCT, rows))
    else:
        rows = min(<int64_t>block, rows) if rows >= LEAST_PRODUCT else block
    while rows > LEAST_PRODUCT and rows * FEWEST_PIECES > n:
        rows = max(<int64_t>LEAST_PRODUCT, rows // 32 * 16)
    return <int>rows


cdef inline int64_t count_pieces(int64_t n, int block, int step) noexcept nogil:
    """Pieces of all blocks; those of the last one are fewer where it is not full."""
    return n // block * ((block + step - 1) // step) + (n % block + step - 1) // step


cdef inline void prefetch_block(const real *x, int64_t number, int64_t n, int64_t q, int block) noexcept nogil:
    cdef Block part = block_at(number, n, q, block)
    if part.rows > 0:
        rskc_prefetch(x + part.offset, part.rows * q * sizeof(real))


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


cdef inline void multiply(const real *x, Piece piece, int q, int columns, const floating *scaled,
                          floating *out) noexcept nogil:
    """out = the products of the cases of a piece, which begins at x, with centers: a column for each of these."""
    cdef floating one = 1, zero = 0
    cdef char no_trans = b"N"
    if floating is float:
        if real is float:
            if RSKC_HAS_PRODUCTS:
                products_float(x, piece.stride, piece.rows, q, columns, scaled, out)
            else:
                sgemm(&no_trans, &no_trans, &piece.rows, &columns, &q, &one, <float*>x, &piece.stride, <float*>scaled, &q, &zero, out, &piece.rows)
    elif real is double:
        if RSKC_HAS_PRODUCTS:
            products_double(x, piece.stride, piece.rows, q, columns, scaled, out)
        else:
            dgemm(&no_trans, &no_trans, &piece.rows, &columns, &q, &one, <double*>x, &piece.stride, <double*>scaled, &q, &zero, out, &piece.rows)
    elif RSKC_HAS_PRODUCTS:
        products_mixed(x, piece.stride, piece.rows, q, columns, scaled, out)
    else:
        products_plain(x, piece.stride, piece.rows, q, columns, scaled, out)


cdef refuse_wide_cells(const real *x, const floating *scaled):
    if real is double and floating is float:
        raise TypeError("Cells in double precision are not multiplied in single.")


cdef void assign_piece(const real *x, Piece piece, Centers c, int64_t runs, const floating *norms, const double *scale,
                       int64_t n, char *room, int32_t *labels, floating *costs) noexcept nogil:
    """Find the nearest centers of some cases, in runs that are ``live``."""
    cdef:
        int64_t i, k, at, own, lost
        floating *product = <floating*>(room + 5 * piece.rows * sizeof(double))
        floating *best = product + piece.rows * runs * c.K
        const floating *scaled = <floating*>c.scaled
        const floating *constants = <floating*>c.constants
    x += piece.offset
    multiply(x, piece, c.width, <int>(runs * c.K), scaled, product)
    for i in range(runs):
        at = c.live[i] * n + piece.first
        own = c.live[i] * c.own * n + piece.first
        lost = 0
        for k in range(c.K if c.missing else 0):
            lost += c.unseen[i * c.K + k]
        if lost:
            assign_in_part(x, piece, c, i, product, scaled + i * c.K * c.width, norms + own, scale + own, <double*>room,
                           labels + at, costs + at)
        elif floating is float:
            nearest_float(product, NULL if c.missing else constants + i * c.K, c.K, piece.rows, norms + own,
                          scale + own if c.missing else NULL, best, labels + at, costs + at)
        else:
            nearest_double(product, NULL if c.missing else constants + i * c.K, c.K, piece.rows, norms + own,
                           scale + own if c.missing else NULL, best, labels + at, costs + at)
        product += piece.rows * c.K


cdef void assign_in_part(const real *x, Piece piece, Centers c, int64_t run, const floating *product,
                         const floating *scaled, const floating *norms, const double *scale, double *taken,
                         int32_t *labels, floating *costs) noexcept nogil:
    """Nearest of the centers of a run that are not observed in all features, for the cases of a piece.

    Products and norms are over all features: what those add that a center lacks is taken out again.
    """
    cdef:
        int i, k, lost
        int64_t j
        double *left = taken + piece.rows
        double *sums = left + piece.rows
        double *best = sums + piece.rows
        double *arg = best + piece.rows
        const int64_t *unseen = c.columns + run * c.K * c.q
        const int64_t *end
        const double *weights = c.weights + c.live[run] * c.own * c.q
        double total = observed_weight_double(weights, weights, c.q)
    for i in range(piece.rows):
        best[i], arg[i] = HUGE_VAL, 0
    for k in range(c.K):
        for i in range(piece.rows):
            taken[i], left[i] = 0, 1
        end = unseen + c.unseen[run * c.K + k]
        for j in range(c.unseen[run * c.K + k]):
            take_feature(x, piece, c.q, unseen[j], weights[unseen[j]], total, scale, taken, left)
        if floating is float:
            lost = take_out_float(product + k * piece.rows, norms, taken, piece.rows, sums)
        else:
            lost = take_out_double(product + k * piece.rows, norms, taken, piece.rows, sums)
        for i in range(piece.rows if lost else 0):
            if taken[i] > CANCELLED * fabs(sums[i]):
                sums[i] = sum_without(x + i, piece.stride, c.q, unseen, end, weights, scaled + 2 * k * c.q)
        nearer(sums, scale, left, k, piece.rows, best, arg)
        unseen += c.q
    for i in range(piece.rows):
        labels[i] = <int32_t>arg[i]
        costs[i] = 0 if best[i] == HUGE_VAL else <floating>best[i]


cdef inline void take_feature(const real *x, Piece piece, int64_t q, int64_t j, double weight, double total,
                              const double *scale, double *taken, double *left) noexcept nogil:
    x += j * piece.stride
    if real is float:
        take_feature_float(x, x + q * piece.stride, weight, total, scale, piece.rows, taken, left)
    else:
        take_feature_double(x, x + q * piece.stride, weight, total, scale, piece.rows, taken, left)


cdef inline double sum_without(const real *x, int64_t stride, int64_t q, const int64_t *unseen, const int64_t *end,
                               const double *weights, const floating *scaled) noexcept nogil:
    """The sum for one case, whose cells are so far apart, term by term over the features that a center has."""
    cdef int64_t j
    cdef double total = 0, value
    for j in range(q):
        value = x[j * stride]
        if unseen < end and unseen[0] == j:
            unseen += 1
        else:
            total += value * (weights[j] * value + <double>scaled[j]) + <double>x[(q + j) * stride] * <double>scaled[q + j]
    return total


cdef inline int64_t room_of(int64_t run, int64_t runs, int threads) noexcept nogil:
    """Which part of the work space a run has: its own, or that of its thread where there are more runs."""
    return run if runs <= threads else threadid()


def trim(const int32_t[:, ::1] labels, const floating[:, ::1] costs, const double[::1] masses, double m, int n_threads,
         int32_t[:, ::1] groups, double[::1] kept, int64_t[:, ::1] cut, double[:, ::1] left):
    """groups = labels, with -1 for the m cases of largest cost (the lower number first in a tie).

    kept = the sum of the other costs, for each run. With masses (else None) cases go until the mass m is gone. The
    last one may go in part and keeps its label: cut (runs, 1) = its number, or -1, and left = what is kept of its
    mass; kept = the sum of masses times costs then. Without masses cut and left are not looked at.
    """
    cdef:
        int64_t runs = labels.shape[0], n = labels.shape[1], r
        const double *mass = NULL if masses is None else &masses[0]
        size_t size = trim_room(n, mass != NULL)
        int threads = n_threads if runs > 1 else 1  # all or one: OpenMP ends threads that a smaller team leaves out
        char *work = <char*>reserved(min(<int64_t>threads, runs) * size)
    for r in prange(runs, nogil=True, num_threads=threads, schedule="dynamic"):
        kept[r] = trim_run(&labels[r, 0], &costs[r, 0], mass, n, m, work + room_of(r, runs, threads) * size, &groups[r, 0],
                           NULL if mass == NULL else &cut[r, 0], NULL if mass == NULL else &left[r, 0])
    free(work)


cdef inline double trim_run(const int32_t *labels, const floating *costs, const double *masses, int64_t n, double m,
                            void *work, int32_t *groups, int64_t *cut, double *left) noexcept nogil:
    if floating is float:
        return trim_run_float(labels, costs, masses, n, m, work, groups, cut, left)
    else:
        return trim_run_double(labels, costs, masses, n, m, work, groups, cut, left)


def shift_sums(const floating[::1] X, int block, const double[::1] location, double factor,
               const double[:, ::1] masses, const int32_t[:, ::1] before, const int32_t[:, ::1] after, parts_before,
               parts_after, int n_threads, double[:, :, ::1] totals, double[:, ::1] counts, int64_t[::1] moved):
    """Bring totals and counts of each group from the grouping ``before`` to ``after``.

    Totals are of (x - location) * factor. Only the cases that changed are read. moved = their number, for each run.
    Where totals have twice as many columns as X, they are of observed cells, and then of marks: how many there are.

    With masses (one row or one a run; else None) each case counts with its own, and counts are masses too. Parts
    (cut, left), None for none, say of either grouping what is kept (runs, slots) of the masses of some cases, which
    have the numbers cut, -1 for none. A run in which another part of a case is kept counts one more case in moved.
    """
    cdef:
        int64_t runs = before.shape[0], n = before.shape[1], p = location.shape[0], K = totals.shape[1], r, s
        int64_t width = totals.shape[2], size = K * (width + 1), own = 0
        int stripes = <int>max(1, min(<int64_t>MAX_STRIPES, n // max(<int64_t>STRIPE_ROWS, STRIPE_CASES * K)))
        int64_t rows = stripe_rows(n, stripes)
        const double *mass = NULL
        const double *place = &location[0] if width > p else place_of(location, factor)
        int64_t gathered = block * p if block > 1 else 0  # room for the cases of a block, row by row
        int64_t *changed = NULL
        double *partial = NULL
        char *touched = NULL  # which groups a stripe has summed
        floating *work = NULL
        Parts old, new
    if block != 1 and block != TABLE_BLOCK:
        raise ValueError(f"block={block} must be 1 or {TABLE_BLOCK}.")
    if masses is not None:
        own, mass = n if masses.shape[0] > 1 else 0, &masses[0, 0]
    try:
        changed = <int64_t*>reserved(runs * stripes * sizeof(int64_t))
        work = <floating*>reserved(<size_t>n_threads * gathered * sizeof(floating))
        if stripes > 1:
            partial = <double*>reserved(<size_t>runs * stripes * size * sizeof(double))
            touched = <char*>reserved(<size_t>runs * stripes * K)
        for r in prange(runs * stripes, nogil=True, num_threads=n_threads, schedule="dynamic"):
            if stripes == 1:
                changed[r] = shift_stripe(&X[0], n, block, place, factor, mass + r * own if mass != NULL else NULL,
                                          &before[r, 0], &after[r, 0], 0, n, p, width, work + threadid() * gathered, NULL,
                                          &totals[r, 0, 0], &counts[r, 0])
            else:
                memset(touched + r * K, 0, K)
                changed[r] = shift_stripe(&X[0], n, block, place, factor, mass + r // stripes * own if mass != NULL else NULL,
                                          &before[r // stripes, 0], &after[r // stripes, 0], min(n, (r % stripes) * rows),
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
            if parts_before is None and parts_after is None:
                continue
            old, new = parts_of(parts_before, r), parts_of(parts_after, r)
            moved[r] += parts_differ(old, new)
            move_parts(&X[0], n, block, &location[0], factor, 1, mass + r * own, &before[r, 0], old, p, width, work,
                       &totals[r, 0, 0], &counts[r, 0])
            move_parts(&X[0], n, block, &location[0], factor, -1, mass + r * own, &after[r, 0], new, p, width, work,
                       &totals[r, 0, 0], &counts[r, 0])
    finally:
        free(changed)
        free(work)
        free(touched)
        free(partial)


cdef struct Parts:
    # Cases that are trimmed in part, and what is kept of them.
    const int64_t *cut
    const double *left
    int64_t slots


cdef Parts parts_of(parts, int64_t run):
    """Those of a run; none where nothing is cut."""
    cdef const int64_t[:, ::1] cut
    cdef const double[:, ::1] left
    if parts is None or parts[0].shape[1] == 0:
        return Parts(NULL, NULL, 0)
    cut, left = parts
    return Parts(&cut[run, 0], &left[run, 0], cut.shape[1])


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
    cdef int64_t i, end, changed = 0, here, first, columns
    cdef double own = 1
    while start < stop:
        end = min(start + max(block, TABLE_BLOCK), stop)
        here = count_changes(before, after, start, end)
        changed += here
        for i in range(start, end if here else start):
            if before[i] == after[i]:
                continue
            if mass != NULL:
                own = mass[i]
            if before[i] >= 0:
                begin_group(touched, before[i], width, totals, counts)
                counts[before[i]] -= own
            if after[i] >= 0:
                begin_group(touched, after[i], width, totals, counts)
                counts[after[i]] += own
        if block > 1 and here * 4 > block:  # laid out row by row, a panel of columns at a time
            first = 0
            while first < p:
                columns = min(<int64_t>SUM_COLUMNS, p - first)
                unblock(x + start * p + first * (end - start), end - start, columns, rows)
                for i in range(start, end):
                    if before[i] != after[i]:
                        move_case(rows + (i - start) * columns, NULL, 1, 1 if mass == NULL else mass[i], before[i], after[i],
                                  columns, width, totals + first)
                first += columns
        else:
            for i in range(start, end if here else start):
                if before[i] != after[i]:
                    move_case(row_of(x, i, n, p, block, rows), location, factor, 1 if mass == NULL else mass[i], before[i],
                              after[i], p, width, totals)
        start = end
    return changed


cdef inline void move_case(const floating *x, const double *location, double factor, double mass, int32_t before,
                           int32_t after, int64_t p, int64_t width, double *totals) noexcept nogil:
    """Take p columns of a case out of the totals of its group before, and add them to those of the one after."""
    if before >= 0:
        move_row(x, location, factor, -mass, p, width, totals + before * width)
    if after >= 0:
        move_row(x, location, factor, mass, p, width, totals + after * width)


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
        move_row_float(x, location, factor, mass, <int>p, width, total)
    else:
        move_row_double(x, location, factor, mass, <int>p, width, total)


def own_distances(const floating[:, ::1] X, const double[::1] location, double factor,
                  const double[:, ::1] weights, const int32_t[:, ::1] labels,
                  const double[:, :, ::1] centers, bint missing, int n_threads, double[:, ::1] out):
    """out = weighted squared distance of (X - location) * factor to the center its label names.

    weights: one row for all runs or one a run. Where cells are missing, NaN marks what is not observed, of cases or
    centers: distances are over features that are observed in both, scaled up by all weight / observed weight;
    infinite where nothing is observed.
    """
    cdef:
        int64_t runs = labels.shape[0], n = labels.shape[1], i, r
        int own = weights.shape[0] > 1, p = <int>X.shape[1]
        double *totals = <double*>reserved(weights.shape[0] * sizeof(double))
        bint even = not missing and all_are_1(&weights[0, 0], weights.shape[0] * p)
    for r in range(weights.shape[0] if missing else 0):
        totals[r] = observed_weight_double(&weights[r, 0], &weights[r, 0], p)
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        for r in range(runs):
            out[r, i] = own_distance(&X[i, 0], &location[0], factor, &centers[r, labels[r, i], 0],
                                     NULL if even else &weights[r * own, 0], totals + r * own if missing else NULL, p)
    free(totals)


cdef bint all_are_1(const double *weights, int64_t size) noexcept nogil:
    cdef int64_t i
    for i in range(size):
        if weights[i] != 1:
            return False
    return True


cdef inline double own_distance(const floating *x, const double *location, double factor, const double *center,
                                const double *weights, const double *total, int p) noexcept nogil:
    if floating is float:
        return own_distance_float(x, location, factor, center, weights, total, p)
    else:
        return own_distance_double(x, location, factor, center, weights, total, p)


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


def single_moves(const floating[::1] X, int block, const double[:, ::1] weights, const double[:, ::1] scale,
                 const double[::1] masses, int max_rounds, int n_threads, int32_t[:, ::1] groups,
                 double[:, :, ::1] totals, double[:, ::1] counts, int64_t[::1] moves):
    """Move or exchange one case at a time while the within sum of squares falls, for every run.

    moves = the number made, for each run. With scale (one row or one a run; else None) the table has values and marks
    (n, 2q), and distances are multiplied by it for the missing cells of each case. With masses (else None) each case
    counts with its own, and only cases of the same mass are exchanged.
    """
    cdef:
        int64_t runs = groups.shape[0], n = groups.shape[1], r
        int K = <int>totals.shape[1], q = <int>weights.shape[1], own = weights.shape[0] > 1
        int width = <int>totals.shape[2], missing = scale is not None
        const double *factors = &scale[0, 0] if missing else NULL
        const double *mass = NULL if masses is None else &masses[0]
        floating *copy = NULL
        const floating *rows = &X[0]
        size_t size = moves_room(n, q, K, missing)
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
            moves[r] = moves_of_run(rows, &weights[r * own, 0], factors + r * own * n if missing else NULL, mass, n, q, K,
                                    max_rounds, &groups[r, 0], &totals[r, 0, 0], &counts[r, 0],
                                    work + room_of(r, runs, threads) * size)
    finally:
        free(copy)
        free(work)


cdef inline int64_t moves_of_run(const floating *rows, const double *weights, const double *scale, const double *mass,
                                 int64_t n, int q, int K, int max_rounds, int32_t *groups, double *totals,
                                 double *counts, double *work) noexcept nogil:
    if floating is float:
        return moves_of_run_float(rows, weights, scale, mass, n, q, K, max_rounds, groups, totals, counts, <Gemm_float>sgemm, work)
    else:
        return moves_of_run_double(rows, weights, scale, mass, n, q, K, max_rounds, groups, totals, counts, <Gemm_double>dgemm, work)


cdef void unblock(const floating *x, int64_t n, int64_t q, floating *rows) noexcept nogil:
    """Lay the cases of one block out row by row, 16 columns at a time."""
    cdef int64_t i, j, first = 0, last
    while first < q:
        last = min(first + 16, q)
        for i in range(n):
            for j in range(first, last):
                rows[i * q + j] = x[j * n + i]
        first = last


def group_sums(const int32_t[:, ::1] groups, const double[::1] values, double[:, ::1] out):
    """out = the sums (runs, 1 + K) of values over the trimmed cases and over each group; values None: all are 1."""
    cdef int64_t runs = groups.shape[0], n = groups.shape[1], r, i
    with nogil:
        out[:, :] = 0
        for r in range(runs):
            for i in range(n):
                out[r, groups[r, i] + 1] += 1 if values is None else values[i]


def draw(const floating[:, ::1] chances, const double[:, ::1] uniforms, int64_t[:, ::1] cases):
    """cases = a case for each uniform number, in proportion to chances; where none has any, any case."""
    cdef:
        int64_t runs = chances.shape[0], n = chances.shape[1], r, i, low, high
        double *ladder = <double*>reserved(n * sizeof(double))
        double sum_
    with nogil:
        for r in range(runs):
            sum_ = 0
            for i in range(n):
                sum_ += chances[r, i]
                ladder[i] = sum_
            for i in range(n if sum_ == 0 else 0):
                ladder[i] = i + 1
            for i in range(uniforms.shape[1]):
                low, high = 0, n - 1  # the first step above the goal, or the last
                while low < high:
                    if ladder[(low + high) // 2] > uniforms[r, i] * ladder[n - 1]:
                        high = (low + high) // 2
                    else:
                        low = (low + high) // 2 + 1
                cases[r, i] = low
    free(ladder)


# ---- Descents: runs of trimmed Lloyd, from their centers to where their groups repeat

cdef struct Descent:
    # What is alike for all runs on a table.
    int64_t n
    int K, q, width  # q columns have weights; a case has width numbers: values, and marks where cells are missing
    int block, row_block
    int64_t own  # 1 where weights, norms and scale have a row for each run
    const double *weights
    const double *scale  # NULL: nothing is missing
    const double *masses  # NULL: each case counts 1
    double m, tol  # cases or mass that is trimmed; the share of the sum by which a fall is none
    int max_iter


cdef struct Results:
    # Of all runs.
    int32_t *groups
    int32_t *labels
    double *within
    uint8_t *converged
    int64_t *cut
    double *left


cdef struct Room:
    # The work space of all runs, or of the one at hand.
    Centers live  # of the runs that go on
    double *centers
    double *totals
    double *counts
    char *costs
    char *piece
    int32_t *fresh  # new groups
    char *buffer
    char *row


def descend(const real[::1] X, int block, const real[::1] rows, int row_block, const double[:, ::1] weights,
            const floating[:, ::1] norms, const double[:, ::1] scale, const double[::1] masses, double m, int max_iter,
            double tol, const double[:, :, ::1] centers, int32_t[:, ::1] groups, int32_t[:, ::1] labels,
            double[::1] within, uint8_t[::1] converged, int64_t[:, ::1] cut, double[:, ::1] left):
    """Run trimmed Lloyd from each of the centers to where groups repeat, or the sum falls by no more than tol of itself.

    In one thread: the caller shares runs among several. X and rows are the same table in two layouts. scale is None
    where nothing is missing, masses where each case counts 1; cut and left are those of ``trim``.
    """
    cdef:
        int K = <int>centers.shape[1], q = <int>centers.shape[2], width = q if scale is None else 2 * q
        Descent d = Descent(groups.shape[1], K, q, width, block, row_block, weights.shape[0] > 1, &weights[0, 0],
                            NULL, NULL, m, tol, max_iter)
        Results out = Results(&groups[0, 0], &labels[0, 0], &within[0], &converged[0], &cut[0, 0], &left[0, 0])
        Room room
        int64_t runs = centers.shape[0], live = runs, n = groups.shape[1], step, i, s, going
        char *work
    if scale is not None:
        d.scale = &scale[0, 0]
    if masses is not None:
        d.masses = &masses[0]
    refuse_wide_cells(&X[0], &norms[0, 0])
    work = <char*>reserved(lay_out(&room, <char*>64, d, runs, sizeof(floating)))
    with nogil:
        lay_out(&room, work, d, runs, sizeof(floating))
        memcpy(room.centers, &centers[0, 0, 0], <size_t>runs * K * q * sizeof(double))
        memset(room.totals, 0, <size_t>runs * K * width * sizeof(double))
        memset(room.counts, 0, <size_t>runs * K * sizeof(double))
        for s in range(runs):
            room.live.live[s] = s
            out.cut[s], out.converged[s] = -1, False
        for i in range(runs * n):
            out.groups[i] = -1
        for step in range(max_iter + 1):
            assign_live(d, &X[0], &norms[0, 0], live, room, out.labels)
            going = 0
            for i in range(live):
                s = room.live.live[i]
                if step_run(d, &rows[0], <floating*>room.costs + s * n, s, step == 0, room, out):
                    out.converged[s] = True
                else:
                    room.live.live[going] = s
                    going += 1
            live = going
            if live == 0:
                break
    free(work)


cdef size_t lay_out(Room *room, char *work, Descent d, int64_t runs, size_t item) noexcept nogil:
    """Lay out the work space of some runs, and return its size."""
    cdef:
        char *end = work + (64 - <size_t>work % 64) % 64
        size_t n = d.n, K = d.K, q = d.q, width = d.width, gathered = max(d.block, d.row_block) * width
    room.live = Centers(d.K, d.q, d.width, d.own, d.scale != NULL, d.weights)
    lay_centers(&room.live, &end, runs, item)
    room.centers = <double*>part_of(&end, runs * K * q * sizeof(double))
    room.totals = <double*>part_of(&end, runs * K * width * sizeof(double))
    room.counts = <double*>part_of(&end, runs * K * sizeof(double))
    room.costs = part_of(&end, runs * n * item)
    room.piece = part_of(&end, piece_room(d.block, runs * d.K, item))
    room.fresh = <int32_t*>part_of(&end, n * sizeof(int32_t))
    room.buffer = part_of(&end, trim_room(n, d.masses != NULL))
    room.row = part_of(&end, gathered * item if d.row_block > 1 else 0)
    return end - work + 64


cdef void assign_live(Descent d, const real *x, const floating *norms, int64_t live, Room room, int32_t *labels) noexcept nogil:
    """Find the nearest centers of all cases in the runs that go on."""
    cdef:
        int columns = <int>(live * d.K), step = product_rows(d.n, d.block, columns, d.width)
        int64_t pieces = (d.block + step - 1) // step, c, s
        Centers of = room.live
    for c in range(columns):
        s = of.live[c // d.K]
        scale_center(of, c, d.weights + s * d.own * d.q, room.centers + (s * d.K + c % d.K) * d.q, <floating*>of.scaled,
                     <floating*>of.constants)
    for c in range(count_pieces(d.n, d.block, step)):
        assign_piece(x, piece_at(c, pieces, step, d.n, d.width, d.block), of, live, norms, d.scale, d.n, room.piece, labels,
                     <floating*>room.costs)


cdef bint step_run(Descent d, const real *rows, const floating *costs, int64_t r, bint begins, Room room,
                   Results out) noexcept nogil:
    """Trim, sum and make centers of run r; return whether it has ended."""
    cdef:
        int64_t i, k, n = d.n, moved, cut = -1
        double left = 0, kept
        int32_t *groups = out.groups + r * n
        const int32_t *labels = out.labels + r * n
        const double *scale = d.scale + r * d.own * n
        double *totals = room.totals + r * d.K * d.width
        double *counts = room.counts + r * d.K
        bint ended
    kept = trim_run(labels, costs, d.masses, n, d.m, room.buffer, room.fresh, &cut, &left)
    for i in range(n if d.scale != NULL else 0):
        if scale[i] == 0:  # nothing that has weight is observed
            room.fresh[i] = -1
    moved = shift_stripe(rows, n, d.row_block, NULL, 1, d.masses, groups, room.fresh, 0, n, d.width, d.width,
                         <real*>room.row, NULL, totals, counts)
    if d.masses != NULL:
        moved += parts_differ(Parts(&out.cut[r], &out.left[r], 1), Parts(&cut, &left, 1))
        move_parts(rows, n, d.row_block, NULL, 1, 1, d.masses, groups, Parts(&out.cut[r], &out.left[r], 1), d.width, d.width,
                   <real*>room.row, totals, counts)
        move_parts(rows, n, d.row_block, NULL, 1, -1, d.masses, room.fresh, Parts(&cut, &left, 1), d.width, d.width,
                   <real*>room.row, totals, counts)
    memcpy(groups, room.fresh, n * sizeof(int32_t))
    # A sum that no longer falls goes round in ties or in rounding.
    ended = not begins and (moved == 0 or kept >= out.within[r] * (1 - d.tol))
    out.cut[r], out.left[r], out.within[r] = cut, left, kept
    fill_empty(d, rows, costs, cut, room, groups, totals, counts)
    for k in range(d.K):
        if counts[k] > 0:  # an empty cluster keeps its center
            center_of(totals + k * d.width, counts[k], d.q, d.scale != NULL, room.centers + (r * d.K + k) * d.q)
    return ended


cdef void fill_empty(Descent d, const real *rows, const floating *costs, int64_t cut, Room room, int32_t *groups,
                     double *totals, double *counts) noexcept nogil:
    """Give each empty group the case that costs most where it is, if it costs anything and is not alone there."""
    cdef int64_t k, i, found
    cdef double mass = 1, most
    cdef const real *case_i
    for k in range(d.K):
        if counts[k] < NO_MASS:  # what rounding left is nothing
            counts[k] = 0
            memset(totals + k * d.width, 0, d.width * sizeof(double))
    for k in range(d.K):
        if counts[k] > 0:
            continue
        found, most = -1, 0
        for i in range(d.n):
            if groups[i] < 0 or i == cut or not costs[i] > most:
                continue
            if counts[groups[i]] - (d.masses[i] if d.masses != NULL else 1) > NO_MASS:
                found, most = i, costs[i]
        if found < 0:
            continue
        mass = d.masses[found] if d.masses != NULL else 1
        case_i = row_of(rows, found, d.n, d.width, d.row_block, <real*>room.row)
        move_row(case_i, NULL, 1, -mass, d.width, d.width, totals + groups[found] * d.width)
        counts[groups[found]] -= mass
        move_row(case_i, NULL, 1, mass, d.width, d.width, totals + k * d.width)
        counts[k] += mass
        groups[found] = <int32_t>k


cdef inline void center_of(const double *total, double count, int64_t q, bint missing, double *center) noexcept nogil:
    cdef int64_t j
    for j in range(q):
        if missing:
            center[j] = total[j] / total[q + j] if total[q + j] > NO_MASS else NAN
        else:
            center[j] = total[j] / count


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
