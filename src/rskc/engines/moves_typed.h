/* Single moves of one run. Included by kernels_typed.h for each T, with MISSING 0 and 1.

   Without missing cells: cases x (n x q), totals (K x q). With missing cells: cases hold q values, 0 in a missing cell, and
   then q marks, 1 where observed; totals hold the sums of both, so that the second half counts the
   observed cells of each cluster and feature. `scale` has what a distance of each case is multiplied
   by for its missing cells. Groups are -1 .. K-1. */

#if MISSING
#define WIDTH(q) (2 * (q))
#define SCALE(i) scale[i]
#else
#define WIDTH(q) (q)
#define SCALE(i) 1.0
#endif

static void MOVES(center_of)(const double *total, double count, int q, double *center) {
#if MISSING
    (void)count;
    for (int j = 0; j < q; j++) center[j] = total[q + j] > 0.5 ? total[j] / total[q + j] : 0;
#else
    for (int j = 0; j < q; j++) center[j] = count > 0 ? total[j] / count : 0;
#endif
}

/* Puts a case into cluster k (sign = 1) or takes it out (sign = -1); keeps the center in step. */
static void MOVES(transfer)(const T *x, int q, int k, double sign, double *totals, double *counts,
                            double *centers) {
    double *total = totals + (size_t)k * WIDTH(q);
    counts[k] += sign;
    for (int j = 0; j < WIDTH(q); j++) total[j] += sign * (double)x[j];
    if (counts[k] > 0) MOVES(center_of)(total, counts[k], q, centers + (size_t)k * q);
}

/* sum_j w_j (x_j - c_j)^2 n_j / (n_j + step), over what is observed: the change of the within sum
   when the case enters (step = 1), or with the sign turned when it leaves (step = -1). */
RSKC_CLONES
static double MOVES(change)(const T *RSKC_RESTRICT x, const double *RSKC_RESTRICT c,
                            const double *RSKC_RESTRICT w, const double *RSKC_RESTRICT total,
                            double count, double step, int q) {
#if MISSING
    double sum = 0;
    (void)count;
    RSKC_SUM_IN_LANES(sum)
    for (int j = 0; j < q; j++) {
        double e = (double)x[j] - c[j], n = total[q + j], left = n + step;
        double share = left > 0.5 ? n / left : 0; /* the only observed cell is its own mean */
        sum += w[j] * (double)x[q + j] * e * e * share;
    }
    return sum;
#else
    (void)total;
    return NAME(weighted_distance)(x, c, w, q) * count / (count + step);
#endif
}

/* What the within sum rises by when x enters the cheapest cluster but `skip`; *to = that cluster. */
static double MOVES(entering)(const T *x, const double *w, int q, int K, int skip,
                              const double *totals, const double *counts, const double *centers,
                              int *to) {
    double least = -1;
    for (int k = 0; k < K; k++) {
        if (k == skip) continue;
        double d = 0;
        if (counts[k] > 0)
            d = MOVES(change)(x, centers + (size_t)k * q, w, totals + (size_t)k * WIDTH(q),
                              counts[k], 1, q);
        if (least < 0 || d < least) {
            least = d;
            *to = k;
        }
    }
    return least;
}

static double MOVES(leaving)(const T *x, const double *w, int q, int k, const double *totals,
                             const double *counts, const double *centers) {
    return MOVES(change)(x, centers + (size_t)k * q, w, totals + (size_t)k * WIDTH(q), counts[k],
                         -1, q);
}

/* One round of moves from cluster to cluster; returns their number. */
static int64_t MOVES(move_round)(const T *x, const double *w, int64_t n, int q, int K,
                                 int32_t *groups, double *totals, double *counts,
                                 double *centers) {
    int64_t moves = 0;
    for (int64_t i = 0; i < n; i++) {
        const T *xi = x + i * WIDTH(q);
        int from = groups[i], to = -1;
        if (from < 0 || counts[from] < 2 || K < 2) continue;
        double gain = MOVES(leaving)(xi, w, q, from, totals, counts, centers);
        double loss = MOVES(entering)(xi, w, q, K, from, totals, counts, centers, &to);
        if (loss < gain * RSKC_GAIN) {
            MOVES(transfer)(xi, q, from, -1, totals, counts, centers);
            MOVES(transfer)(xi, q, to, 1, totals, counts, centers);
            groups[i] = to;
            moves++;
        }
    }
    return moves;
}

/* The kept case whose leaving gains most; -1 if none may leave. */
static int64_t MOVES(costliest)(const T *x, const double *w, const double *scale, int64_t n, int q,
                                const int32_t *groups, const double *totals, const double *counts,
                                const double *centers, double *gain) {
    int64_t worst = -1;
    *gain = 0;
    (void)scale;
    for (int64_t i = 0; i < n; i++) {
        if (groups[i] < 0 || counts[groups[i]] < 2) continue;
        double d = SCALE(i) * MOVES(leaving)(x + i * WIDTH(q), w, q, groups[i], totals, counts, centers);
        if (d > *gain) {
            *gain = d;
            worst = i;
        }
    }
    return worst;
}

/* Exchanges a kept case for a trimmed one while that lowers the sum; returns the number. Cases of
   scale 0, of which nothing that has weight is observed, stay out. */
static int64_t MOVES(exchange_round)(const T *x, const double *w, const double *scale, int64_t n,
                                     int q, int K, int32_t *groups, double *totals, double *counts,
                                     double *centers) {
    int64_t moves = 0;
    while (moves < n) {
        double gain, least;
        int64_t in = -1;
        int64_t out = MOVES(costliest)(x, w, scale, n, q, groups, totals, counts, centers, &gain);
        if (out < 0) break;
        int from = groups[out], to = from, candidate = from;
        MOVES(transfer)(x + out * WIDTH(q), q, from, -1, totals, counts, centers);
        least = gain * RSKC_GAIN;
        for (int64_t i = 0; i < n; i++) {
            if (groups[i] >= 0 || SCALE(i) == 0) continue;
            double loss = SCALE(i) * MOVES(entering)(x + i * WIDTH(q), w, q, K, -1, totals, counts,
                                                     centers, &candidate);
            if (loss < least) {
                least = loss;
                in = i;
                to = candidate;
            }
        }
        groups[out] = -1;
        if (in < 0) in = out; /* nothing better: it goes back */
        MOVES(transfer)(x + in * WIDTH(q), q, to, 1, totals, counts, centers);
        groups[in] = to;
        if (in == out) break;
        moves++;
    }
    return moves;
}

/* Rounds until nothing improves, at most max_rounds; returns the number of moves. */
static int64_t MOVES(single_moves)(const T *x, const double *w, const double *scale, int64_t n,
                                   int q, int K, int max_rounds, int32_t *groups, double *totals,
                                   double *counts, double *centers) {
    int64_t moves = 0;
    for (int k = 0; k < K; k++)
        MOVES(center_of)(totals + (size_t)k * WIDTH(q), counts[k], q, centers + (size_t)k * q);
    for (int round = 0; round < max_rounds; round++) {
        int64_t now = MOVES(move_round)(x, w, n, q, K, groups, totals, counts, centers);
        now += MOVES(exchange_round)(x, w, scale, n, q, K, groups, totals, counts, centers);
        moves += now;
        if (now == 0) break;
    }
    return moves;
}

#undef WIDTH
#undef SCALE
