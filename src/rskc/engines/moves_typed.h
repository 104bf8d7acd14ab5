/* Single moves of one run. Included by kernels_typed.h for each T, with MISSING 0 and 1.

   Without missing cells: cases x (n x q), totals (K x q). With missing cells: cases hold q values,
   0 where missing, and then q marks, 1 where observed; totals hold the sums of both, so that the
   second half counts the observed cells of each cluster and feature. `scale` has what a distance of
   each case is multiplied by for its missing cells. Groups are -1 .. K-1, and -2 for a case that stays. `mass` (n) has what each
   case counts, or is NULL: 1. Then all counts are masses, and only cases of the same mass are
   exchanged for trimmed ones; Lloyd's iterations do the rest.

   A round first screens all cases by matrix products, and then moves only those one by one, with
   sums kept up to date, for which the screening has found a gain. While the centers are near those
   of the last screening, the next rounds look at the cases only for which that leaves it open. */

#if MISSING
#define WIDTH(q) (2 * (q))
#define SCALE(run, i) ((run)->scale[i])
#else
#define WIDTH(q) (q)
#define SCALE(run, i) 1.0
#endif
#define MASS(run, i) ((run)->mass == NULL ? 1.0 : (run)->mass[i])
/* Whether a case is all that its cluster has. */
#define ALONE(run, i, k) ((run)->counts[k] - MASS(run, i) < RSKC_NO_MASS)

/* What a run is made of, and the work space of its screening. */
typedef struct {
    const T *x;
    const double *w, *scale, *mass;
    double most; /* the largest mass */
    int64_t n;
    int q, K;
    int32_t *groups;
    double *totals, *counts, *centers;
    double *norms, *gain, *loss; /* (n): sum w x^2; of leaving; of entering the cheapest other */
    int64_t *cases;              /* (n): numbers of candidates */
    T *factors, *product, *squares;
    double *constants;
    double *screened, *screened_counts; /* (K x q), (K): centers and counts of the last screening */
} MOVES(Run);

static void MOVES(update_center)(const MOVES(Run) *run, int k) {
    int q = run->q;
    const double *total = run->totals + (size_t)k * WIDTH(q);
    double *center = run->centers + (size_t)k * q;
#if MISSING
    for (int j = 0; j < q; j++) center[j] = total[q + j] > RSKC_NO_MASS ? total[j] / total[q + j] : 0;
#else
    double count = run->counts[k];
    for (int j = 0; j < q; j++) center[j] = count > 0 ? total[j] / count : 0;
#endif
}

/* Puts a case into cluster k (step = its mass) or takes it out (step = -mass); keeps the center in
   step. */
static void MOVES(transfer)(const MOVES(Run) *run, int64_t i, int k, double step) {
    const T *x = run->x + i * WIDTH(run->q);
    double *total = run->totals + (size_t)k * WIDTH(run->q);
    run->counts[k] += step;
    for (int j = 0; j < WIDTH(run->q); j++) total[j] += step * (double)x[j];
    if (run->counts[k] > 0) MOVES(update_center)(run, k);
}

/* |step| sum_j w_j (x_j - c_j)^2 n_j / (n_j + step), over what is observed: the change of the within
   sum when the case enters (step = its mass), or with the sign turned when it leaves (-mass). */
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
        double share = left > RSKC_NO_MASS ? n / left : 0; /* the only observed cell is its own mean */
        sum += w[j] * (double)x[q + j] * e * e * share;
    }
    return fabs(step) * sum;
#else
    (void)total;
    return fabs(step) * NAME(weighted_distance)(x, c, w, q) * count / (count + step);
#endif
}

/* The change when case i enters cluster k (sign = 1) or, with the sign turned, leaves it (-1). */
static double MOVES(change_of)(const MOVES(Run) *run, int64_t i, int k, int sign) {
    int q = run->q;
    return MOVES(change)(run->x + i * WIDTH(q), run->centers + (size_t)k * q, run->w,
                         run->totals + (size_t)k * WIDTH(q), run->counts[k], sign * MASS(run, i), q);
}

/* What the within sum rises by when a case enters the cheapest cluster but `skip`; *to = that cluster. */
static double MOVES(entering)(const MOVES(Run) *run, int64_t i, int skip, int *to) {
    double least = -1;
    for (int k = 0; k < run->K; k++) {
        if (k == skip) continue;
        double d = run->counts[k] > 0 ? MOVES(change_of)(run, i, k, 1) : 0;
        if (least < 0 || d < least) {
            least = d;
            *to = k;
        }
    }
    return least;
}

/* Moves those of the cases that gain by it from cluster to cluster; returns their number. */
static int64_t MOVES(move_round)(const MOVES(Run) *run, int64_t n_cases) {
    int64_t moves = 0;
    for (int64_t c = 0; c < n_cases; c++) {
        int64_t i = run->cases[c];
        int from = run->groups[i], to = -1;
        if (ALONE(run, i, from)) continue;
        double gain = MOVES(change_of)(run, i, from, -1);
        if (MOVES(entering)(run, i, from, &to) < gain * RSKC_GAIN) {
            MOVES(transfer)(run, i, from, -MASS(run, i));
            MOVES(transfer)(run, i, to, MASS(run, i));
            run->groups[i] = to;
            run->loss[i] = 0; /* what the screening found of it is no longer true */
            moves++;
        }
    }
    return moves;
}

/* What the within sum falls by when a case leaves its cluster, for the cases start .. stop. */
static void MOVES(exact_gains)(const MOVES(Run) *run, int64_t start, int64_t stop) {
    for (int64_t i = start; i < stop; i++)
        run->gain[i] = run->groups[i] < 0 ? 0 : MOVES(change_of)(run, i, run->groups[i], -1);
}

/* The kept case whose leaving gains most, for its mass; -1 if none may leave. */
static int64_t MOVES(costliest)(const MOVES(Run) *run, double *gain) {
    int64_t worst = -1;
    double most = 0;
    *gain = 0;
    for (int64_t i = 0; i < run->n; i++) {
        if (run->groups[i] < 0 || ALONE(run, i, run->groups[i])) continue;
        if (SCALE(run, i) * run->gain[i] / MASS(run, i) > most) {
            most = SCALE(run, i) * run->gain[i] / MASS(run, i);
            *gain = SCALE(run, i) * run->gain[i];
            worst = i;
        }
    }
    return worst;
}

/* The loss of a trimmed case that enters cluster k lowers its bound, if it is less. */
static void MOVES(lower_bound)(const MOVES(Run) *run, int64_t i, int k) {
    double d = run->counts[k] > 0 ? MOVES(change_of)(run, i, k, 1) : 0;
    if (d < run->loss[i]) run->loss[i] = d;
}

/* Exchanges the costliest kept case for the cheapest of n_out trimmed ones while that lowers the
   sum; returns the number. Losses are bounds from below: a cluster that changed lowers them, and
   only a case whose bound is low enough is looked at in full. */
static int64_t MOVES(exchange_round)(const MOVES(Run) *run, int64_t n_out) {
    int64_t moves = 0;
    while (n_out > 0 && moves < run->n) {
        double gain, least;
        int64_t place = -1, out = MOVES(costliest)(run, &gain);
        if (out < 0) break;
        int from = run->groups[out], to = from, candidate = from;
        double mass = MASS(run, out);
        MOVES(transfer)(run, out, from, -mass);
        least = gain * RSKC_GAIN;
        for (int64_t c = 0; c < n_out; c++) {
            int64_t i = run->cases[c];
            MOVES(lower_bound)(run, i, from);
            if (MASS(run, i) != mass) continue;
            if (SCALE(run, i) * (run->loss[i] - RSKC_SLACK(T) * run->norms[i] * mass) >= least) continue;
            double loss = SCALE(run, i) * MOVES(entering)(run, i, -1, &candidate);
            if (loss < least) {
                least = loss;
                place = c;
                to = candidate;
            }
        }
        if (place < 0) { /* nothing better: it goes back */
            MOVES(transfer)(run, out, from, mass);
            break;
        }
        int64_t in = run->cases[place];
        MOVES(transfer)(run, in, to, mass);
        run->groups[out] = -1, run->groups[in] = to;
        run->cases[place] = out, run->loss[out] = 0;
        for (int64_t c = 0; c < n_out; c++) MOVES(lower_bound)(run, run->cases[c], to);
        for (int64_t i = 0; i < run->n; i++)
            if (run->groups[i] == from || run->groups[i] == to) MOVES(exact_gains)(run, i, i + 1);
        moves++;
    }
    return moves;
}

/* Factors of the products by which entering losses of all cases are found, and constants. */
static void MOVES(prepare)(const MOVES(Run) *run) {
    int q = run->q;
    for (int k = 0; k < run->K; k++) {
        const double *c = run->centers + (size_t)k * q;
        T *f = run->factors + (size_t)k * WIDTH(q);
        /* With masses the share is one of the case and the cluster, and not in the factors. */
        double constant = 0, share = run->mass ? 1 : run->counts[k] / (run->counts[k] + 1);
#if MISSING
        const double *cells = run->totals + (size_t)k * 2 * q + q;
        T *of_squares = run->factors + (size_t)run->K * 2 * q + (size_t)k * q;
        for (int j = 0; j < q; j++) {
            share = run->w[j] * cells[j] / (cells[j] + run->most); /* of no case is it less */
            of_squares[j] = (T)share;
            f[j] = (T)(-2 * share * c[j]);
            f[q + j] = (T)(share * c[j] * c[j]);
        }
#else
        for (int j = 0; j < q; j++) {
            f[j] = (T)(-2 * share * run->w[j] * c[j]);
            constant += share * run->w[j] * c[j] * c[j];
        }
#endif
        run->constants[k] = constant;
    }
}

/* gain and loss of the cases start .. start + rows, by products. */
static void MOVES(screen_rows)(const MOVES(Run) *run, int64_t start, int rows, NAME(Gemm) gemm) {
    int q = run->q, width = WIDTH(q), K = run->K;
    T one = 1, zero = 0;
    const T *x = run->x + start * width;
    gemm("T", "N", &rows, &K, &width, &one, (T *)x, &width, run->factors, &width, &zero, run->product, &rows);
#if MISSING
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < q; j++) run->squares[(size_t)i * q + j] = x[(size_t)i * width + j] * x[(size_t)i * width + j];
    gemm("T", "N", &rows, &K, &q, &one, run->squares, &q, run->factors + (size_t)K * width, &q, &one, run->product, &rows);
#endif
    for (int i = 0; i < rows; i++) run->loss[start + i] = HUGE_VAL, run->gain[start + i] = 0;
    for (int k = 0; k < K; k++) {
        const T *d = run->product + (size_t)k * rows;
        double n = run->counts[k], share = n / (n + 1), turn = n > 1 ? (n + 1) / (n - 1) : 0;
        for (int i = 0; i < rows; i++) {
            int64_t c = start + i;
            double mass = MASS(run, c), loss;
            if (MISSING) {
                loss = mass * (double)d[i];
            } else if (run->mass == NULL) {
                loss = share * run->norms[c] + (double)d[i] + run->constants[k];
                if (run->groups[c] == k) run->gain[c] = turn * loss;
            } else {
                loss = mass * n * (run->norms[c] + (double)d[i] + run->constants[k]);
                if (run->groups[c] == k && !ALONE(run, c, k)) run->gain[c] = loss / (n - mass);
                loss /= n + mass;
            }
            if (loss < run->loss[c] && run->groups[c] != k) run->loss[c] = loss;
        }
    }
    if (MISSING) MOVES(exact_gains)(run, start, start + rows);
}

/* gain and loss of all cases. */
static void MOVES(screen)(const MOVES(Run) *run, NAME(Gemm) gemm) {
    int64_t n = run->n;
    MOVES(prepare)(run);
    for (int64_t start = 0; start < n; start += RSKC_SCREEN_ROWS)
        MOVES(screen_rows)(run, start, (int)(n - start < RSKC_SCREEN_ROWS ? n - start : RSKC_SCREEN_ROWS), gemm);
    memcpy(run->screened, run->centers, (size_t)run->K * run->q * sizeof(double));
    memcpy(run->screened_counts, run->counts, (size_t)run->K * sizeof(double));
}

/* Kept cases that some move may gain by, as far as the screening can see. */
static int64_t MOVES(movable)(const MOVES(Run) *run) {
    int64_t found = 0;
    for (int64_t i = 0; i < run->n; i++) {
        int own = run->groups[i];
        if (own < 0 || ALONE(run, i, own)) continue;
        double off = RSKC_SLACK(T) * run->norms[i] * MASS(run, i);
        if (run->loss[i] < run->gain[i] + off) run->cases[found++] = i;
    }
    return found;
}

/* The same some moves after the screening, by the triangle inequality: a distance has changed by no
   more than its center has moved. Cases for which that leaves it open are looked at in full.
   Returns -1 where these are too many, or clusters too small for shares to change but little. */
static int64_t MOVES(still_movable)(const MOVES(Run) *run) {
    int64_t open = 0, found = 0;
    double most = 0, least_share = 1;
    if (MISSING || run->mass) return -1; /* every feature, or every case, has a share of its own */
    for (int k = 0; k < run->K; k++) {
        double n = run->counts[k], m = run->screened_counts[k];
        if (n < 2 || m < 2) return -1;
        run->constants[k] = sqrt(weighted_distance_double(run->screened + (size_t)k * run->q,
                                                          run->centers + (size_t)k * run->q, run->w, run->q));
        if (run->constants[k] > most) most = run->constants[k];
        if (n / (n + 1) * (m + 1) / m < least_share) least_share = n / (n + 1) * (m + 1) / m;
    }
    for (int64_t i = 0; i < run->n; i++) {
        int own = run->groups[i];
        if (own < 0) continue;
        double n = run->counts[own], m = run->screened_counts[own], off = RSKC_SLACK(T) * run->norms[i];
        double loss = sqrt(run->loss[i] > off ? run->loss[i] - off : 0) - most;
        double gain = sqrt(run->gain[i] + off) + sqrt(m / (m - 1)) * run->constants[own];
        if (loss > 0 && least_share * loss * loss > n / (n - 1) * (m - 1) / m * gain * gain) continue;
        run->cases[open++] = i;
    }
    if (open > run->n / 4) return -1;
    for (int64_t c = 0; c < open; c++) {
        int64_t i = run->cases[c];
        int own = run->groups[i], to;
        double gain = MOVES(change_of)(run, i, own, -1), loss = MOVES(entering)(run, i, own, &to);
        if (loss < gain + RSKC_SLACK(T) * run->norms[i]) run->cases[found++] = i;
    }
    return found;
}

/* Rounds until nothing improves, at most max_rounds; returns the number of moves. */
static int64_t MOVES(single_moves)(const T *x, const double *w, const double *scale,
                                   const double *mass, int64_t n, int q, int K, int max_rounds,
                                   int32_t *groups, double *totals, double *counts, NAME(Gemm) gemm,
                                   double *work) {
    MOVES(Run) run = {x, w, scale, mass, 1, n, q, K, groups, totals, counts};
    int64_t moves = 0;
    for (int64_t i = 0; mass != NULL && i < n; i++)
        if (i == 0 || mass[i] > run.most) run.most = mass[i];
    run.centers = work, work += (size_t)K * q;
    run.screened = work, work += (size_t)K * q;
    run.screened_counts = work, work += K;
    run.norms = work, work += n;
    run.gain = work, work += n;
    run.loss = work, work += n;
    run.cases = (int64_t *)work, work += n;
    run.constants = work, work += K;
    run.factors = (T *)work, work += (size_t)K * (WIDTH(q) + (MISSING ? q : 0));
    run.product = (T *)work, work += (size_t)RSKC_SCREEN_ROWS * K;
    run.squares = (T *)work;
    for (int k = 0; k < K; k++) MOVES(update_center)(&run, k);
    for (int64_t i = 0; i < n; i++) run.norms[i] = NAME(weighted_norm)(x + i * WIDTH(q), w, q);
    for (int round = 0, fresh = 1; round < max_rounds; round++) {
        int64_t now = 0, candidates = fresh ? -1 : MOVES(still_movable)(&run);
        if ((fresh = candidates < 0)) {
            MOVES(screen)(&run, gemm);
            candidates = K < 2 ? 0 : MOVES(movable)(&run);
        }
        for (int sweep = 0; sweep < RSKC_SWEEPS; sweep++) {
            int64_t moved = MOVES(move_round)(&run, candidates);
            now += moved;
            if (moved == 0) break;
        }
        if (now == 0) { /* trimmed cases of which something that has weight is observed */
            candidates = 0;
            for (int64_t i = 0; i < n; i++)
                if (groups[i] == -1 && SCALE(&run, i) != 0) run.cases[candidates++] = i;
        }
        int exchanged = now == 0 && (double)candidates * q <= RSKC_EXCHANGE_WORK;
        if (exchanged && candidates > 0) {
            if (!fresh) MOVES(screen)(&run, gemm);
            if (!MISSING) MOVES(exact_gains)(&run, 0, n);
            now = MOVES(exchange_round)(&run, candidates);
        }
        fresh = exchanged;
        moves += now;
        if (now == 0) break;
    }
    return moves;
}

#undef WIDTH
#undef SCALE
#undef MASS
#undef ALONE
