/* Included by kernels.h with T = float and T = double. */

/* d holds K columns of `rows` scalar products; d + constant[k], or d where there are no constants, is
   the distance to center k up to the case's own norm. labels = the k of the least, the lower in a
   tie, and costs = the distance. With scale (else NULL) distances are over observed features, and
   scaled up; the label of a case without any is 0. */
RSKC_CLONES
static void NAME(nearest)(const T *RSKC_RESTRICT d, const T *RSKC_RESTRICT constant, int K, int rows,
                          const T *RSKC_RESTRICT norms, const double *RSKC_RESTRICT scale,
                          T *RSKC_RESTRICT best, int32_t *RSKC_RESTRICT labels,
                          T *RSKC_RESTRICT costs) {
    T c = constant == NULL ? 0 : constant[0], *RSKC_RESTRICT arg = best + rows;
    for (int i = 0; i < rows; i++) {
        best[i] = d[i] + c;
        arg[i] = 0;
    }
    for (int k = 1; k < K; k++) {
        const T *RSKC_RESTRICT dk = d + (size_t)k * rows;
        T ck = constant == NULL ? 0 : constant[k];
        T code = (T)k; /* the index rides in a T so that one vector width serves both */
        for (int i = 0; i < rows; i++) {
            T value = dk[i] + ck;
            int closer = value < best[i];
            best[i] = closer ? value : best[i];
            arg[i] = closer ? code : arg[i];
        }
    }
    for (int i = 0; i < (scale == NULL ? rows : 0); i++) {
        T value = best[i] + norms[i];
        labels[i] = (int32_t)arg[i];
        costs[i] = value < 0 ? 0 : value; /* a NaN stays one */
    }
    for (int i = 0; i < (scale == NULL ? 0 : rows); i++) {
        T value = best[i] + norms[i];
        labels[i] = scale[i] > 0 ? (int32_t)arg[i] : 0;
        costs[i] = (T)((value < 0 ? 0 : value) * scale[i]);
    }
}

/* What features have in which a center is not observed, for one such feature and the values and
   marks of `rows` cases: taken += w x^2, and left, a share of the case's observed weight, falls. */
RSKC_CLONES
static void NAME(take_feature)(const T *RSKC_RESTRICT x, const T *RSKC_RESTRICT marks, double w,
                               double total, const double *RSKC_RESTRICT scale, int rows,
                               double *RSKC_RESTRICT taken, double *RSKC_RESTRICT left) {
    for (int i = 0; i < rows; i++) {
        taken[i] += w * (double)x[i] * (double)x[i];
        left[i] -= w / total * (double)marks[i] * scale[i];
    }
}

/* sums = d + norms - taken; returns how many have lost their digits. */
RSKC_CLONES
static int NAME(take_out)(const T *RSKC_RESTRICT d, const T *RSKC_RESTRICT norms,
                          const double *RSKC_RESTRICT taken, int rows, double *RSKC_RESTRICT sums) {
    double lost = 0;
    RSKC_SUM_IN_LANES(lost)
    for (int i = 0; i < rows; i++) {
        sums[i] = (double)d[i] + (double)norms[i] - taken[i];
        lost += taken[i] > RSKC_CANCELLED * fabs(sums[i]) ? 1 : 0;
    }
    return (int)lost;
}

/* out = -2 w c; returns sum_j w_j c_j^2. */
RSKC_CLONES
static double NAME(scale_center)(const double *RSKC_RESTRICT w, const double *RSKC_RESTRICT c, int q,
                                 T *RSKC_RESTRICT out) {
    double sum = 0;
    for (int j = 0; j < q; j++) out[j] = (T)(-2 * w[j] * c[j]);
    RSKC_SUM_IN_LANES(sum)
    for (int j = 0; j < q; j++) sum += w[j] * c[j] * c[j];
    return sum;
}

/* out = -2 w c and then w c^2, 0 where the center is not observed; returns in how many features
   that have weight it is not. */
RSKC_CLONES
static int NAME(scale_observed_center)(const double *RSKC_RESTRICT w, const double *RSKC_RESTRICT c,
                                       int q, T *RSKC_RESTRICT out) {
    double unseen = 0;
    RSKC_SUM_IN_LANES(unseen)
    for (int j = 0; j < q; j++) {
        double own = c[j] == c[j] ? c[j] : 0;
        out[j] = (T)(-2 * w[j] * own);
        out[q + j] = (T)(w[j] * own * own);
        unseen += (c[j] != c[j]) & (w[j] > 0) ? 1 : 0;
    }
    return (int)unseen;
}

/* out = (x - location) * factor, cut off at +-limits, for q columns; columns NULL: the first q. Where
   cells may be missing these are NaN: out is 0 there, and q marks follow, 1 where one is observed. */
RSKC_CLONES
static void NAME(center_row)(const T *RSKC_RESTRICT x, const int64_t *RSKC_RESTRICT columns,
                             const double *RSKC_RESTRICT location, double factor,
                             const double *RSKC_RESTRICT limits, int64_t q, int missing,
                             double *RSKC_RESTRICT out) {
    for (int64_t j = 0; j < q; j++) {
        int64_t source = columns == NULL ? j : columns[j];
        double value = ((double)x[source] - location[source]) * factor, limit = limits[source];
        value = value > limit ? limit : value;
        value = value < -limit ? -limit : value;
        if (missing) out[q + j] = value == value ? 1 : 0;
        out[j] = value == value ? value : 0;
    }
}

/* total += factor * (x - location) */
RSKC_CLONES
static void NAME(add_row)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT location,
                          double factor, int p, double *RSKC_RESTRICT total) {
    for (int j = 0; j < p; j++) total[j] += factor * ((double)x[j] - location[j]);
}

/* total += mass * x */
RSKC_CLONES
static void NAME(add_plain_row)(const T *RSKC_RESTRICT x, double mass, int p,
                                double *RSKC_RESTRICT total) {
    for (int j = 0; j < p; j++) total[j] += mass * (double)x[j];
}

/* total += factor * (x - location) where observed; then, in the second half, mass is added to the totals of marks. */
RSKC_CLONES
static void NAME(add_observed_row)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT location,
                                   double factor, double mass, int p, double *RSKC_RESTRICT total) {
    double *RSKC_RESTRICT cells = total + p;
    for (int j = 0; j < p; j++) {
        double value = (double)x[j] - location[j];
        double own = value == value ? mass : 0;
        value = value == value ? value : 0; /* not in the sum itself: GCC would store it twice */
        total[j] += factor * value;
        cells[j] += own;
    }
}

/* Adds a case, in the frame, to the totals of a group: mass times its values and, where these are
   wider, marks. location NULL: values are in place. */
static void NAME(move_row)(const T *x, const double *location, double factor, double mass, int p,
                           int64_t width, double *total) {
    if (location == NULL) NAME(add_plain_row)(x, mass, p, total);
    else if (width == p) NAME(add_row)(x, location, factor * mass, p, total);
    else NAME(add_observed_row)(x, location, factor * mass, mass, p, total);
}

/* sum_j w_j x_j^2 */
RSKC_CLONES
static double NAME(weighted_norm)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT w, int p) {
    double sum = 0;
    RSKC_SUM_IN_LANES(sum)
    for (int j = 0; j < p; j++) sum += w[j] * (double)x[j] * (double)x[j];
    return sum;
}

typedef void (*NAME(Gemm))(char *, char *, int *, int *, int *, T *, T *, int *, T *, int *, T *, T *, int *);

/* sum_j w_j (x_j - c_j)^2 */
RSKC_CLONES
static double NAME(weighted_distance)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT c,
                                      const double *RSKC_RESTRICT w, int p) {
    double sum = 0;
    RSKC_SUM_IN_LANES(sum)
    for (int j = 0; j < p; j++) {
        double e = (double)x[j] - c[j];
        sum += w[j] * e * e;
    }
    return sum;
}

/* sum_j w_j ((x_j - location_j) * factor - c_j)^2; an infinite cell counts where it has weight. Where
   w is NULL all weigh 1. */
RSKC_CLONES
static double NAME(framed_distance)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT location,
                                    double factor, const double *RSKC_RESTRICT c,
                                    const double *RSKC_RESTRICT w, int p) {
    double sum = 0;
    RSKC_SUM_IN_LANES(sum)
    for (int j = 0; j < (w == NULL ? p : 0); j++) {
        double e = ((double)x[j] - location[j]) * factor - c[j];
        sum += e * e;
    }
    RSKC_SUM_IN_LANES(sum)
    for (int j = 0; j < (w == NULL ? 0 : p); j++) {
        double e = ((double)x[j] - location[j]) * factor - c[j];
        sum += w[j] > 0 ? w[j] * e * e : 0;
    }
    return sum;
}

/* The same over features that are observed in case and center, scaled up by total / their weight;
   infinite if they have none. */
RSKC_CLONES
static double NAME(observed_distance)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT location,
                                      double factor, const double *RSKC_RESTRICT c,
                                      const double *RSKC_RESTRICT w, double total, int p) {
    double sum = 0, seen = 0;
    RSKC_SUM_IN_LANES(sum, seen)
    for (int j = 0; j < p; j++) {
        double e = ((double)x[j] - location[j]) * factor - c[j];
        double own = w[j]; /* read in any case: then sums stay in registers */
        own = e == e ? own : 0;
        sum += own > 0 ? own * e * e : 0;
        seen += own;
    }
    return seen > RSKC_NOTHING * total ? sum * total / seen : HUGE_VAL;
}

/* Either of them; total = all weight where cells may be missing, else NULL. */
static double NAME(own_distance)(const T *x, const double *location, double factor, const double *c,
                                 const double *w, const double *total, int p) {
    return total == NULL ? NAME(framed_distance)(x, location, factor, c, w, p)
                         : NAME(observed_distance)(x, location, factor, c, w, *total, p);
}

/* The weight of what is observed. */
RSKC_CLONES
static double NAME(observed_weight)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT w, int p) {
    double seen = 0;
    RSKC_SUM_IN_LANES(seen)
    for (int j = 0; j < p; j++) {
        double own = w[j];
        seen += x[j] == x[j] ? own : 0;
    }
    return seen;
}

/* What distances are scaled up by: total / that weight; 0 if there is none. */
static double NAME(missing_factor)(const T *x, const double *w, double total, int p) {
    double seen = NAME(observed_weight)(x, w, p);
    return seen > RSKC_NOTHING * total ? total / seen : 0;
}

/* sums[i] += w x_i^2 for a column of `rows` cases. */
RSKC_CLONES
static void NAME(add_squares)(const T *RSKC_RESTRICT x, double w, int64_t rows,
                              double *RSKC_RESTRICT sums) {
    for (int64_t i = 0; i < rows; i++) sums[i] += w * (double)x[i] * (double)x[i];
}

/* The k-th least (k = 0, 1, ...) of a[0..n), which is reordered. */
static T NAME(quickselect)(T *a, int64_t n, int64_t k) {
    int64_t lo = 0, hi = n - 1;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        T x = a[lo], y = a[mid], z = a[hi];
        T pivot = x < y ? (y < z ? y : (x < z ? z : x)) : (x < z ? x : (y < z ? z : y));
        int64_t i = lo, j = hi;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) {
                T t = a[i];
                a[i++] = a[j];
                a[j--] = t;
            }
        }
        if (k <= j) hi = j;
        else if (k >= i) lo = i;
        else return a[k];
    }
    return a[k];
}

/* A number of at least 0 as a whole number: the order is the same. */
static inline BITS NAME(bits)(T value) {
    BITS bits;
    value += 0; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

/* In which of equal steps from low to high the values lie, what is beyond in the first or last. */
RSKC_CLONES
static void NAME(buckets)(const T *RSKC_RESTRICT values, int64_t n, BITS low, BITS high, int shift,
                          int32_t *RSKC_RESTRICT out) {
    for (int64_t i = 0; i < n; i++) {
        BITS v = NAME(bits)(values[i]);
        v = v < low ? low : v;
        v = v > high ? high : v;
        out[i] = (int32_t)((v - low) >> shift);
    }
}

/* The largest of the values below the bar, as whole numbers; *times = how often it occurs. */
RSKC_CLONES
static BITS NAME(largest_below)(const T *RSKC_RESTRICT values, int64_t n, BITS bar, int64_t *times) {
    BITS top = 0, found = 0;
    for (int64_t i = 0; i < n; i++) {
        BITS v = NAME(bits)(values[i]);
        v &= -(BITS)(v < bar); /* a mask, since compilers vectorize that */
        top = v > top ? v : top;
    }
    for (int64_t i = 0; i < n; i++) found += NAME(bits)(values[i]) == top;
    *times = (int64_t)found;
    return top;
}

/* The m-th largest, for small m: the largest, the next, and so on. */
static T NAME(one_of_largest)(const T *values, int64_t n, int64_t m, int64_t *spare) {
    BITS bar = ~(BITS)0;
    int64_t times = 0;
    for (*spare = -m; *spare < 0 && bar > 0; *spare += times) {
        bar = NAME(largest_below)(values, n, bar, &times);
    }
    T value;
    memcpy(&value, &bar, sizeof(T));
    return value;
}

/* The m-th largest of values >= 0 (m >= 1); *spare = how many of those equal to it are not among
   the m largest. A few values say how to cut their range into buckets, the values are counted, and
   those of the one bucket in question are ordered. Work space: n + 1 values, n whole numbers. */
static T NAME(mth_largest)(const T *values, int64_t n, int64_t m, T *inside, int32_t *bucket,
                           int64_t *spare) {
    if (m <= RSKC_FEW_LARGEST) return NAME(one_of_largest)(values, n, m, spare);
    int64_t counts[RSKC_BUCKETS], found = 0, above = 0;
    BITS low = ~(BITS)0, high = 0;
    int shift = 0, size = n < RSKC_BUCKETS ? RSKC_BUCKETS / 16 : RSKC_BUCKETS, own = size - 1;
    memset(counts, 0, (size_t)size * sizeof(int64_t));
    for (int64_t i = 0; i < n; i += 1 + n / RSKC_SAMPLE) {
        BITS v = NAME(bits)(values[i]);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    while ((high - low) >> shift >= (BITS)size) shift++;
    NAME(buckets)(values, n, low, high, shift, bucket);
    for (int64_t i = 0; i < n; i++) counts[bucket[i]]++;
    while (above + counts[own] < m) above += counts[own--];
    for (int64_t i = 0; i < n; i++) {
        inside[found] = values[i];
        found += bucket[i] == own;
    }
    T bar = NAME(quickselect)(inside, found, found - (m - above));
    *spare = -(m - above);
    for (int64_t i = 0; i < found; i++) *spare += inside[i] >= bar;
    return bar;
}

RSKC_CLONES
static double NAME(total)(const T *RSKC_RESTRICT costs, int64_t n) {
    double sum = 0;
    RSKC_SUM_IN_LANES(sum)
    for (int64_t i = 0; i < n; i++) sum += (double)costs[i];
    return sum;
}

/* groups = labels and kept = costs, but -1 and 0 where the cost is not below the bar. */
RSKC_CLONES
static void NAME(cut)(const int32_t *RSKC_RESTRICT labels, const T *RSKC_RESTRICT costs, int64_t n,
                      T bar, int32_t *RSKC_RESTRICT groups, T *RSKC_RESTRICT kept) {
    for (int64_t i = 0; i < n; i++) groups[i] = costs[i] < bar ? labels[i] : -1;
    for (int64_t i = 0; i < n; i++) kept[i] = costs[i] < bar ? costs[i] : 0;
}

/* groups = labels, and -1 for the m cases of largest cost; the lower case number goes first where
   costs tie. Returns the sum of the costs of the others. */
static double NAME(trim_cases)(const int32_t *labels, const T *costs, int64_t n, int64_t m, T *buffer,
                             int32_t *groups) {
    if (m == 0) {
        memcpy(groups, labels, (size_t)n * sizeof(int32_t));
        return NAME(total)(costs, n);
    }
    int64_t spare;
    T bar = NAME(mth_largest)(costs, n, m, buffer, groups, &spare);
    NAME(cut)(labels, costs, n, bar, groups, buffer);
    double kept = NAME(total)(buffer, n);
    for (int64_t i = n; spare > 0 && i-- > 0;) {
        if (costs[i] != bar) continue;
        groups[i] = labels[i];
        kept += bar;
        spare--;
    }
    return kept;
}

/* What trimming by mass has to order: a case of the bucket in question. */
typedef struct {
    T cost;
    int64_t number;
} NAME(Costing);

/* The larger cost first, the lower number where costs tie. */
static int NAME(costs_more)(const void *one, const void *other) {
    const NAME(Costing) *a = one, *b = other;
    if (a->cost != b->cost) return a->cost > b->cost ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* The sum of masses times costs of the cases that are in a group. */
RSKC_CLONES
static double NAME(total_by_mass)(const int32_t *RSKC_RESTRICT groups, const T *RSKC_RESTRICT costs,
                                  const double *RSKC_RESTRICT masses, int64_t n) {
    double sum = 0;
    RSKC_SUM_IN_LANES(sum)
    for (int64_t i = 0; i < n; i++) sum += groups[i] < 0 ? 0 : masses[i] * (double)costs[i];
    return sum;
}

/* Buckets become groups: those of the labels, and -1 above the bucket of the last case that goes. */
RSKC_CLONES
static void NAME(cut_buckets)(const int32_t *RSKC_RESTRICT labels, int64_t n, int32_t last,
                              int32_t *RSKC_RESTRICT groups) {
    for (int64_t i = 0; i < n; i++) groups[i] = groups[i] > last ? -1 : labels[i];
}

/* The same by mass: cases go, the largest cost first, until the mass m is gone. The last one may go
   in part: *cut = its number, or -1, and *left = what is kept of its mass. groups = labels, and -1
   for cases that are gone. Returns the sum of masses times costs of what is kept. The buckets are
   those of mth_largest. */
static double NAME(trim_masses)(const int32_t *labels, const T *costs, const double *masses,
                                    int64_t n, double m, void *buffer, int32_t *groups,
                                    int64_t *cut, double *left) {
    NAME(Costing) *inside = buffer;
    double sums[RSKC_BUCKETS], gone = 0, kept, slack = RSKC_MASS_SLACK * m;
    BITS low = ~(BITS)0, high = 0;
    int shift = 0, size = n < RSKC_BUCKETS ? RSKC_BUCKETS / 16 : RSKC_BUCKETS, own = size - 1;
    int64_t found = 0, last = 0;
    *cut = -1, *left = 0;
    if (m <= 0) {
        memcpy(groups, labels, (size_t)n * sizeof(int32_t));
    } else {
        for (int i = 0; i < size; i++) sums[i] = 0;
        for (int64_t i = 0; i < n; i += 1 + n / RSKC_SAMPLE) {
            BITS v = NAME(bits)(costs[i]);
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        while ((high - low) >> shift >= (BITS)size) shift++;
        NAME(buckets)(costs, n, low, high, shift, groups);
        for (int64_t i = 0; i < n; i++) sums[groups[i]] += masses[i];
        while (own > 0 && gone + sums[own] <= m + slack) gone += sums[own--];
        for (int64_t i = 0; i < n; i++) {
            inside[found].number = i;
            found += groups[i] == own;
        }
        for (int64_t i = 0; i < found; i++) inside[i].cost = costs[inside[i].number];
        qsort(inside, (size_t)found, sizeof(NAME(Costing)), NAME(costs_more));
        NAME(cut_buckets)(labels, n, own, groups);
        while (last < found && gone + masses[inside[last].number] <= m + slack) {
            gone += masses[inside[last].number];
            groups[inside[last++].number] = -1;
        }
        if (last < found && m - gone > slack) {
            *cut = inside[last].number;
            *left = masses[*cut] - (m - gone);
        }
    }
    kept = NAME(total_by_mass)(groups, costs, masses, n);
    if (*cut >= 0) kept -= (masses[*cut] - *left) * (double)costs[*cut];
    return kept;
}

/* Either of them; masses NULL: each case counts 1. */
static double NAME(trim_run)(const int32_t *labels, const T *costs, const double *masses, int64_t n,
                             double m, void *buffer, int32_t *groups, int64_t *cut, double *left) {
    return masses == NULL ? NAME(trim_cases)(labels, costs, n, (int64_t)m, buffer, groups)
                          : NAME(trim_masses)(labels, costs, masses, n, m, buffer, groups, cut, left);
}

#define MISSING 0
#define MOVES(x) NAME(x)
#include "moves_typed.h"
#undef MISSING
#undef MOVES
#define MISSING 1
#define MOVES(x) NAME(x##_missing)
#include "moves_typed.h"
#undef MISSING
#undef MOVES

/* Either of them; scale NULL: no cell is missing. */
static int64_t NAME(moves_of_run)(const T *x, const double *w, const double *scale,
                                  const double *mass, int64_t n, int q, int K, int max_rounds,
                                  int32_t *groups, double *totals, double *counts, NAME(Gemm) gemm,
                                  double *work) {
    return (scale == NULL ? NAME(single_moves) : NAME(single_moves_missing))(
        x, w, scale, mass, n, q, K, max_rounds, groups, totals, counts, gemm, work);
}
