/* The inner loops of the passes for cells whose squared error is bounded.

   Cases are brought into the frame first, as doubles: what follows is one loop for all types. A NaN
   in a case or a center is not observed: its error is NaN, and compares false. */
#ifndef RSKC_CELLS_H
#define RSKC_CELLS_H

#include "kernels.h"

/* Cases whose distances are summed side by side. */
#define RSKC_CELL_LANES 16

/* costs = bounded distances of the cases of a piece to a center. z holds q columns of RSKC_CELL_LANES
   cases. Sums over observed cells are scaled up by total / observed weight. */
RSKC_CLONES
static void bounded_costs(const double *RSKC_RESTRICT z, const double *RSKC_RESTRICT center,
                          const double *RSKC_RESTRICT weights, const double *RSKC_RESTRICT limits,
                          double total, int q, double *RSKC_RESTRICT costs) {
    double sums[RSKC_CELL_LANES] = {0}, left[RSKC_CELL_LANES] = {0};
    for (int j = 0; j < q; j++) {
        const double *RSKC_RESTRICT x = z + (size_t)j * RSKC_CELL_LANES;
        double mu = center[j], w = weights[j], limit = limits[j];
        for (int i = 0; i < RSKC_CELL_LANES; i++) {
            double e = (x[i] - mu) * (x[i] - mu);
            sums[i] += w * (e <= limit ? e : e == e ? limit : 0);
            left[i] += e == e ? 0 : w;
        }
    }
    for (int i = 0; i < RSKC_CELL_LANES; i++) {
        double observed = total - left[i];
        double scaled = left[i] > 0 ? sums[i] * total / observed : sums[i];
        costs[i] = observed > RSKC_NOTHING * total ? scaled : HUGE_VAL;
    }
}

/* Keeps the least of the costs and its k; the lower k wins a tie. */
RSKC_CLONES
static void keep_nearest(const double *RSKC_RESTRICT costs, double k, double *RSKC_RESTRICT best,
                         double *RSKC_RESTRICT arg) {
    for (int i = 0; i < RSKC_CELL_LANES; i++) {
        int closer = costs[i] < best[i];
        best[i] = closer ? costs[i] : best[i];
        arg[i] = closer ? k : arg[i];
    }
}

/* The bounded distance of one case, in the frame. */
RSKC_CLONES
static double bounded_distance(const double *RSKC_RESTRICT z, const double *RSKC_RESTRICT center,
                               const double *RSKC_RESTRICT weights,
                               const double *RSKC_RESTRICT limits, double total, int q) {
    double sum = 0, left = 0;
    RSKC_SUM_IN_LANES(sum, left)
    for (int j = 0; j < q; j++) {
        double e = (z[j] - center[j]) * (z[j] - center[j]);
        sum += weights[j] * (e <= limits[j] ? e : e == e ? limits[j] : 0);
        left += e == e ? 0 : weights[j];
    }
    double observed = total - left;
    if (!(observed > RSKC_NOTHING * total)) return HUGE_VAL;
    return left > 0 ? sum * total / observed : sum;
}

/* Adds the unflagged cells of a case to the sums of its group, and what all cost. */
RSKC_CLONES
static void add_bounded(const double *RSKC_RESTRICT z, const double *RSKC_RESTRICT center,
                        const double *RSKC_RESTRICT limits, double share, int q,
                        double *RSKC_RESTRICT values, double *RSKC_RESTRICT marks,
                        double *RSKC_RESTRICT within) {
    for (int j = 0; j < q; j++) {
        double e = (z[j] - center[j]) * (z[j] - center[j]);
        values[j] += e <= limits[j] ? share * z[j] : 0;
        marks[j] += e <= limits[j] ? share : 0;
        within[j] += e <= limits[j] ? share * e : e == e ? share * limits[j] : 0;
    }
}

/* The lower median of m numbers, which are put in another order; NaN of none. */
static double lower_median(double *a, int64_t m) {
    return m == 0 ? NAN : quickselect_double(a, m, (m - 1) / 2);
}

#endif
