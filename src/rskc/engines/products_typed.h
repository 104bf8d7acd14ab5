/* Products of cases with centers. Included by products.h for each T, each type of CELL and each length
   of vectors.

   A library of BLAS multiplies a tall block by a few columns at a fifth of its speed, and that is
   what an iteration of a few runs is. Here cases lie column by column, so that a vector holds one
   feature of several cases: a tile of two vectors and up to 6 centers stays in registers while the
   features go by. 5000 x 2000 cells by 10 centers take 1.7 ms in single precision; sgemm takes 9.

   The product of a case and a center is one sum, fused, in the order of the features. So it has the
   same bits whatever cases and centers are multiplied with it. */

/* A tile: out[c * rows + i] += sum_j x[j * stride + i] * f[c * q + j] for C centers. `next` cells
   on, what is multiplied after that is asked for: nothing else tells the machine. Where the tile is
   not full, `masks` say which cases there are. */
RSKC_INLINE void NAME(tile)(const CELL *x, int64_t stride, int n, int64_t next, const T *f, int64_t q,
                            const MASK *masks, int fresh, int64_t rows, T *out, const int C) {
    VECTOR low[6], high[6];
    for (int c = 0; c < C; c++) {
        low[c] = fresh ? MM(setzero)() : LOAD(out + c * rows, masks, 0);
        high[c] = fresh ? MM(setzero)() : LOAD(out + c * rows + LANES, masks, 1);
    }
    for (int j = 0; j < n; j++) {
        VECTOR x_low = CELLS(x, masks, 0), x_high = CELLS(x + LANES, masks, 1);
        _mm_prefetch((const char *)(x + next), _MM_HINT_T1);
        x += stride;
        for (int c = 0; c < C; c++) {
            VECTOR factor = MM(set1)(f[c * q + j]);
            low[c] = MM(fmadd)(x_low, factor, low[c]);
            high[c] = MM(fmadd)(x_high, factor, high[c]);
        }
    }
    for (int c = 0; c < C; c++) {
        STORE(out + c * rows, masks, 0, low[c]);
        STORE(out + c * rows + LANES, masks, 1, high[c]);
    }
}

/* All tiles of a panel of n features with C centers. */
RSKC_INLINE void NAME(panel)(const CELL *x, int64_t stride, int rows, int n, const T *f, int64_t q,
                             int fresh, T *out, const int C) {
    int i = 0;
    for (; i + 2 * LANES <= rows; i += 2 * LANES)
        NAME(tile)(x + i, stride, n, n * stride, f, q, NULL, fresh, rows, out + i, C);
    if (i < rows) {
        MASK masks[2] = {FIRST(rows - i), FIRST(rows - i - LANES)};
        NAME(tile)(x + i, stride, n, n * stride, f, q, masks, fresh, rows, out + i, C);
    }
}

/* out (columns x rows) = scaled (columns x q) times x, whose features are `stride` apart. */
RSKC_TARGET
static void NAME(products)(const CELL *x, int64_t stride, int rows, int64_t q, int columns,
                           const T *scaled, T *out) {
    for (int64_t j = 0; j < q; j += RSKC_PANEL) {
        int n = (int)(q - j < RSKC_PANEL ? q - j : RSKC_PANEL), C;
        for (int c = 0; c < columns; c += C) {
            const CELL *xj = x + j * stride;
            const T *f = scaled + c * q + j;
            T *to = out + (int64_t)c * rows;
            int left = columns - c;
            C = left == 7 || left == 8 ? 4 : left < 6 ? left : 6;
            switch (C) {
            case 6: NAME(panel)(xj, stride, rows, n, f, q, j == 0, to, 6); break;
            case 5: NAME(panel)(xj, stride, rows, n, f, q, j == 0, to, 5); break;
            case 4: NAME(panel)(xj, stride, rows, n, f, q, j == 0, to, 4); break;
            case 3: NAME(panel)(xj, stride, rows, n, f, q, j == 0, to, 3); break;
            case 2: NAME(panel)(xj, stride, rows, n, f, q, j == 0, to, 2); break;
            default: NAME(panel)(xj, stride, rows, n, f, q, j == 0, to, 1);
            }
        }
    }
}

#undef NAME
#undef T
#undef CELL
#undef CELLS
#undef VECTOR
#undef LANES
#undef MM
#undef FIRST
