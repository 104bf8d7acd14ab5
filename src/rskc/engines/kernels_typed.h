/* Included by kernels.h with T = float and T = double. */

/* d holds K columns of `rows` scalar products; d + constant[k] is the distance to center k up to
   the case's own norm. Keeps the least and its k; the lower k wins a tie. */
RSKC_CLONES
static void NAME(nearest)(const T *RSKC_RESTRICT d, const T *RSKC_RESTRICT constant, int K, int rows,
                          T *RSKC_RESTRICT best, T *RSKC_RESTRICT arg) {
    T c = constant[0];
    for (int i = 0; i < rows; i++) {
        best[i] = d[i] + c;
        arg[i] = 0;
    }
    for (int k = 1; k < K; k++) {
        const T *RSKC_RESTRICT dk = d + (size_t)k * rows;
        T ck = constant[k];
        T code = (T)k; /* the index rides in a T so that one vector width serves both */
        for (int i = 0; i < rows; i++) {
            T value = dk[i] + ck;
            int closer = value < best[i];
            best[i] = closer ? value : best[i];
            arg[i] = closer ? code : arg[i];
        }
    }
}

/* labels = arg, costs = max(0, best + norms). */
RSKC_CLONES
static void NAME(store_nearest)(const T *RSKC_RESTRICT best, const T *RSKC_RESTRICT arg,
                                const T *RSKC_RESTRICT norms, int rows,
                                int32_t *RSKC_RESTRICT labels, T *RSKC_RESTRICT costs) {
    for (int i = 0; i < rows; i++) {
        T value = best[i] + norms[i];
        labels[i] = (int32_t)arg[i];
        costs[i] = value < 0 ? 0 : value; /* a NaN stays one */
    }
}

/* out = (x - location) * factor, cut off at +-limits, for q columns; columns NULL: the first q. */
RSKC_CLONES
static void NAME(center_row)(const T *RSKC_RESTRICT x, const int64_t *RSKC_RESTRICT columns,
                             const double *RSKC_RESTRICT location, double factor,
                             const double *RSKC_RESTRICT limits, int64_t q,
                             double *RSKC_RESTRICT out) {
    for (int64_t j = 0; j < q; j++) {
        int64_t source = columns == NULL ? j : columns[j];
        double value = ((double)x[source] - location[source]) * factor, limit = limits[source];
        value = value < limit ? value : limit;
        out[j] = value > -limit ? value : -limit;
    }
}

/* total += factor * (x - location) */
RSKC_CLONES
static void NAME(add_row)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT location,
                          double factor, int p, double *RSKC_RESTRICT total) {
    for (int j = 0; j < p; j++) total[j] += factor * ((double)x[j] - location[j]);
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

/* sum_j w_j ((x_j - location_j) * factor - c_j)^2 */
RSKC_CLONES
static double NAME(framed_distance)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT location,
                                    double factor, const double *RSKC_RESTRICT c,
                                    const double *RSKC_RESTRICT w, int p) {
    double sum = 0;
    RSKC_SUM_IN_LANES(sum)
    for (int j = 0; j < p; j++) {
        double e = ((double)x[j] - location[j]) * factor - c[j];
        sum += w[j] * e * e;
    }
    return sum;
}

static int NAME(compare)(const void *a, const void *b) {
    T x = *(const T *)a, y = *(const T *)b;
    return (x > y) - (x < y);
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

/* Counts the values above `high`, and copies those in [low, high] to `inside`. */
static void NAME(between_bounds)(const T *values, int64_t n, T low, T high, T *inside,
                                 int64_t *n_above, int64_t *n_inside) {
    int64_t above = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        T v = values[i];
        inside[count] = v;
        above += v > high;
        count += (v >= low) & (v <= high);
    }
    *n_above = above;
    *n_inside = count;
}

/* The m-th largest value (m >= 1). A sorted sample brackets it, so that one pass over the data and
   a quickselect among the few values inside the bracket are enough. buffer: n + 1 values. */
static T NAME(mth_largest)(const T *values, int64_t n, int64_t m, T *buffer) {
    if (n > 8 * RSKC_SAMPLE) {
        T sample[RSKC_SAMPLE];
        int64_t step = n / RSKC_SAMPLE, above, inside;
        for (int64_t i = 0; i < RSKC_SAMPLE; i++) sample[i] = values[i * step];
        qsort(sample, RSKC_SAMPLE, sizeof(T), NAME(compare));
        int64_t place = RSKC_SAMPLE - 1 - (m * RSKC_SAMPLE) / n; /* expected place of the answer */
        int64_t low = place - 48, high = place + 48;             /* three standard deviations */
        if (low < 0) low = 0;
        if (high > RSKC_SAMPLE - 1) high = RSKC_SAMPLE - 1;
        NAME(between_bounds)(values, n, sample[low], sample[high], buffer, &above, &inside);
        if (above < m && m <= above + inside)
            return NAME(quickselect)(buffer, inside, inside - (m - above));
    }
    memcpy(buffer, values, (size_t)n * sizeof(T));
    return NAME(quickselect)(buffer, n, n - m);
}

RSKC_CLONES
static double NAME(total)(const T *RSKC_RESTRICT costs, int64_t n) {
    double sum = 0;
    RSKC_SUM_IN_LANES(sum)
    for (int64_t i = 0; i < n; i++) sum += (double)costs[i];
    return sum;
}

/* groups = labels, with -1 where the cost is not below the bar; returns the sum of the costs below,
   to which what is above has added nothing, however large. */
RSKC_CLONES
static double NAME(cut)(const int32_t *RSKC_RESTRICT labels, const T *RSKC_RESTRICT costs, int64_t n,
                        T bar, int32_t *RSKC_RESTRICT groups) {
    double kept = 0;
    RSKC_SUM_IN_LANES(kept)
    for (int64_t i = 0; i < n; i++) {
        int below = costs[i] < bar;
        groups[i] = below ? labels[i] : -1;
        kept += below ? (double)costs[i] : 0;
    }
    return kept;
}

/* groups = labels, and -1 for the m cases of largest cost; the lower case number goes first where
   costs tie. Returns the sum of the costs of the others. */
static double NAME(trim_run)(const int32_t *labels, const T *costs, int64_t n, int64_t m, T *buffer,
                             int32_t *groups) {
    if (m == 0) {
        memcpy(groups, labels, (size_t)n * sizeof(int32_t));
        return NAME(total)(costs, n);
    }
    T bar = NAME(mth_largest)(costs, n, m, buffer);
    double kept = NAME(cut)(labels, costs, n, bar, groups);
    int64_t left = m;
    for (int64_t i = 0; i < n; i++) left -= costs[i] > bar;
    for (int64_t i = 0; i < n; i++) {
        if (costs[i] != bar || left-- > 0) continue;
        groups[i] = labels[i];
        kept += bar;
    }
    return kept;
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
