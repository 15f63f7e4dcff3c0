/* SPDX-License-Identifier: Apache-2.0
 * solve_test.c: qrtool_solve of the C interface as a C program calls it. Arguments: where the draws
 * begin; the device, which ends with 77 where it is not there; how many draws it gets. */
#include "expect.h"

struct number {
  double re, im;
};

static struct number entry(const struct array* a, int64_t b, int64_t i, int64_t j) {
  struct number x;
  x.re = part(a, b, i, j, 0);
  x.im = a->type >= QRTOOL_COMPLEX128 ? part(a, b, i, j, 1) : 0;
  return x;
}

static double square(struct number x) { return x.re * x.re + x.im * x.im; }

/* x + sign conj?(y) z */
static struct number plus_product(struct number x, double sign, struct number y, struct number z,
                                  int conjugates) {
  const double im = conjugates ? -y.im : y.im;
  x.re += sign * (y.re * z.re - im * z.im);
  x.im += sign * (y.re * z.im + im * z.re);
  return x;
}

/* ||A^H (b - A x)|| / (||A|| hypot(||A|| ||x||, ||b||)), by the plainest loops: what the backward
 * error bounds. */
static double gradient(const struct array* a, const struct array* b, const struct array* x,
                       const struct array* w, int64_t place, int64_t j) {
  const int64_t of_a = a->count == 1 ? 0 : place, of_b = b->count == 1 ? 0 : place;
  struct number* r = calloc((size_t)a->rows + 1, sizeof *r);
  double squares = 0, norm_a = 0, norm_b = 0, norm_x = 0;
  for (int64_t i = 0; i < a->rows; ++i) {
    const double weight =
        w == NULL ? 1 : part(w, w->count == 1 ? 0 : place, i, w->columns == 1 ? 0 : j, 0);
    r[i] = entry(b, of_b, i, j);
    norm_b += weight * square(r[i]);
    for (int64_t l = 0; l < a->columns; ++l) {
      r[i] = plus_product(r[i], -1, entry(a, of_a, i, l), entry(x, place, l, j), 0);
      norm_a += weight * square(entry(a, of_a, i, l));
    }
    r[i].re *= weight;
    r[i].im *= weight;
  }
  for (int64_t l = 0; l < a->columns; ++l) {
    struct number sum = {0, 0};
    for (int64_t i = 0; i < a->rows; ++i) sum = plus_product(sum, 1, entry(a, of_a, i, l), r[i], 1);
    squares += square(sum);
  }
  for (int64_t l = 0; l < a->columns; ++l) norm_x += square(entry(x, place, l, j));
  free(r);
  return squares == 0 ? 0 : sqrt(squares / (norm_a * (norm_a * norm_x + norm_b)));
}

/* The type of weights and standard errors. */
static int real_type(int type) {
  return type == QRTOOL_FLOAT64 || type == QRTOOL_COMPLEX128 ? QRTOOL_FLOAT64 : QRTOOL_FLOAT32;
}

enum { NO_WEIGHTS, OF_ROWS, OF_ENTRIES };

static int types; /* of elements, that are solved */

static void solves(qrtool_context* context, int type, int64_t of_a, int64_t of_b, int64_t m,
                   int64_t n, int64_t p, int weighs, int order) {
  const int64_t count = of_a == 1 ? of_b : of_a, k = m < n ? m : n;
  struct array a = new_array(type, of_a, m, n, order);
  struct array b = new_array(type, of_b, m, p, (order + 1) % ORDERS);
  struct array w = new_array(real_type(type), weighs == OF_ENTRIES ? count : 1, m,
                             weighs == OF_ENTRIES ? p : 1, (order + 3) % ORDERS);
  struct array x = new_array(type, count, n, p, (order + 2) % ORDERS);
  struct array errors = new_array(real_type(type), count, n, p, (order + 4) % ORDERS);
  qrtool_solution* found = calloc((size_t)(count * p) + 1, sizeof *found);
  qrtool_solutions out = {0};
  qrtool_matrices in_a, in_b, in_w;
  fill(&a);
  fill(&b);
  for (int64_t i = 0; i < w.count * m * w.columns; ++i)
    set_part(&w, i / (m * w.columns), i / w.columns % m, i % w.columns, 0,
             0.1 + fabs(chance_number()));
  in_a = matrices(&a);
  in_b = matrices(&b);
  in_w = matrices(&w);
  out.size = sizeof out;
  out.x = place(&x);
  out.solutions = found;
  if (m > n) out.errors = place(&errors);
  EXPECT(qrtool_solve(context, &in_a, &in_b, weighs == NO_WEIGHTS ? NULL : &in_w, NULL, &out) ==
         QRTOOL_OK);
  EXPECT(keeps_its_padding(&x) && keeps_its_padding(&errors));
  for (int64_t s = 0; s < count * p; ++s) {
    const int64_t place_of_s = s / p, j = s % p;
    const struct array* weights = weighs == NO_WEIGHTS ? NULL : &w;
    EXPECT(found[s].status == QRTOOL_GOOD && found[s].rank == k);
    EXPECT(found[s].backward_error <= found[s].bar);
    EXPECT(gradient(&a, &b, &x, weights, place_of_s, j) <= 1.1 * found[s].bar);
    if (m > n) EXPECT(found[s].degrees_of_freedom == (double)(m - n));
    if (m > n && n > 0) EXPECT(part(&errors, place_of_s, 0, j, 0) > 0);
  }
  free_array(&a);
  free_array(&b);
  free_array(&w);
  free_array(&x);
  free_array(&errors);
  free(found);
}

static void a_line_is_fitted(qrtool_context* context) {
  /* y = 1 + 2 t, with one point that is missing and one that counts nothing. */
  double a[10] = {1, 0, 1, 1, 1, 2, 1, 3, 1, 4}, b[5] = {1, 3, NAN, 7, 100};
  double w[5] = {1, 1, 1, 1, 0}, x[2];
  qrtool_matrices in_a = {0}, in_b = {0}, in_w = {0};
  qrtool_solve_options options = {0};
  qrtool_solutions out = {0};
  qrtool_solution found;
  in_a.data = a;
  in_b.data = b;
  in_w.data = w;
  in_a.count = in_b.count = in_w.count = in_b.columns = in_w.columns = 1;
  in_a.rows = in_b.rows = in_w.rows = 5;
  in_a.columns = 2;
  out.size = sizeof out;
  out.x.data = x;
  out.solutions = &found;
  EXPECT(qrtool_solve(context, &in_a, &in_b, &in_w, NULL, &out) == QRTOOL_NOT_ALL_GOOD);
  EXPECT(found.status == QRTOOL_NON_FINITE && isnan(x[0]));
  options.size = sizeof options;
  options.skip_missing = 1;
  EXPECT(qrtool_solve(context, &in_a, &in_b, &in_w, &options, &out) == QRTOOL_OK);
  EXPECT(fabs(x[0] - 1) < 1e-14 && fabs(x[1] - 2) < 1e-14);
  EXPECT(found.degrees_of_freedom == 1);
  b[0] = b[1] = NAN; /* one row is left for two numbers */
  EXPECT(qrtool_solve(context, &in_a, &in_b, &in_w, &options, &out) == QRTOOL_NOT_ALL_GOOD);
  EXPECT(found.status == QRTOOL_TOO_FEW_ROWS && isnan(x[0]));
  options.least_norm = 1;
  EXPECT(qrtool_solve(context, &in_a, &in_b, &in_w, &options, &out) == QRTOOL_OK);
  EXPECT(fabs(x[0] - 0.7) < 1e-14 && fabs(x[1] - 2.1) < 1e-14);
  w[0] = -1;
  EXPECT(qrtool_solve(context, &in_a, &in_b, &in_w, &options, &out) == QRTOOL_BAD_INPUT);
}

static void dependent_columns_have_least_norm(qrtool_context* context) {
  const double a[6] = {1, 1, 2, 2, 3, 3}, b[3] = {2, 4, 6};
  double x[2];
  qrtool_matrices in_a = {0}, in_b = {0};
  qrtool_solve_options options = {0};
  qrtool_solutions out = {0};
  qrtool_solution found;
  in_a.data = a;
  in_b.data = b;
  in_a.count = in_b.count = in_b.columns = 1;
  in_a.rows = in_b.rows = 3;
  in_a.columns = 2;
  out.size = sizeof out;
  out.x.data = x;
  out.solutions = &found;
  EXPECT(qrtool_solve(context, &in_a, &in_b, NULL, NULL, &out) == QRTOOL_OK);
  EXPECT(found.rank == 1 && fabs(x[0] - 1) < 1e-14 && fabs(x[1] - 1) < 1e-14);
  options.size = sizeof options;
  options.basic = 1;
  EXPECT(qrtool_solve(context, &in_a, &in_b, NULL, &options, &out) == QRTOOL_OK);
  EXPECT(fabs(x[0] + x[1] - 2) < 1e-14 && x[0] * x[1] == 0);
  options.basic = 0;
  options.ridge = 14; /* (A'A + 14 I) x = A'b: x = 28 / 42 for both */
  EXPECT(qrtool_solve(context, &in_a, &in_b, NULL, &options, &out) == QRTOOL_OK);
  EXPECT(fabs(x[0] - 2. / 3) < 1e-14 && fabs(x[1] - 2. / 3) < 1e-14);
  options.ridge = -1;
  EXPECT(qrtool_solve(context, &in_a, &in_b, NULL, &options, &out) == QRTOOL_BAD_CALL);
  options.ridge = 0;
  in_b.rows = 2;
  EXPECT(qrtool_solve(context, &in_a, &in_b, NULL, &options, &out) == QRTOOL_BAD_CALL);
  in_b.rows = 3;
  in_b.type = QRTOOL_FLOAT32;
  EXPECT(qrtool_solve(context, &in_a, &in_b, NULL, &options, &out) == QRTOOL_BAD_CALL);
}

static void complex_numbers_are_complex(qrtool_context* context) {
  /* (1 + i) x = 2, and a second row that counts nothing: x = 1 - i */
  const double a[4] = {1, 1, 1, 0}, b[4] = {2, 0, 0, 1}, w[2] = {1, 0};
  double x[2];
  qrtool_matrices in_a = {0}, in_b = {0}, in_w = {0};
  qrtool_solutions out = {0};
  in_a.data = a;
  in_b.data = b;
  in_w.data = w;
  in_a.type = in_b.type = QRTOOL_COMPLEX128;
  in_a.count = in_b.count = in_w.count = in_a.columns = in_b.columns = in_w.columns = 1;
  in_a.rows = in_b.rows = in_w.rows = 2;
  out.size = sizeof out;
  out.x.data = x;
  EXPECT(qrtool_solve(context, &in_a, &in_b, &in_w, NULL, &out) == QRTOOL_OK);
  EXPECT(fabs(x[0] - 1) < 1e-14 && fabs(x[1] + 1) < 1e-14);
  in_w.type = QRTOOL_COMPLEX128;
  in_w.rows = 1;
  EXPECT(qrtool_solve(context, &in_a, &in_b, &in_w, NULL, &out) == QRTOOL_BAD_CALL);
}

static void a_ridge_leaves_a_complex_mean_alone(qrtool_context* context) {
  const double a[4] = {1, 0, 1, 0}, b[4] = {2, 0, 0, 1};
  double x[2];
  qrtool_matrices in_a = {0}, in_b = {0};
  qrtool_solve_options options = {0};
  qrtool_solutions out = {0};
  in_a.data = a;
  in_b.data = b;
  in_a.type = in_b.type = QRTOOL_COMPLEX128;
  in_a.count = in_b.count = in_a.columns = in_b.columns = 1;
  in_a.rows = in_b.rows = 2;
  options.size = sizeof options;
  options.intercept = 1;
  options.ridge = 100;
  out.size = sizeof out;
  out.x.data = x;
  EXPECT(qrtool_solve(context, &in_a, &in_b, NULL, &options, &out) == QRTOOL_OK);
  EXPECT(fabs(x[0] - 1) < 1e-14 && fabs(x[1] - 0.5) < 1e-14);
}

static void draw(qrtool_context* context, int draws) {
  for (int i = 0; i < draws; ++i) {
    const int is_large = chance_below(20) == 0;
    const int64_t most = is_large ? 150 : 12, count = chance_below(5);
    const int64_t of_a = chance_below(3) == 0 ? 1 : count, of_b = chance_below(3) == 0 ? 1 : count;
    const int64_t n = chance_below(most), p = chance_below(is_large ? 60 : 6);
    const int64_t m = n + chance_below(most);
    solves(context, (int)chance_below(types), of_a, of_b, m, n, p, (int)chance_below(3),
           (int)chance_below(ORDERS));
  }
}

int main(int argc, char** argv) {
  qrtool_context* context = NULL;
  qrtool_context_options options = {0};
  options.size = sizeof options;
  options.device = argc > 2 ? argv[2] : "cpu";
  types = argc > 2 ? 2 : 4; /* complex systems are solved on the CPU alone */
  options.threads = 2;
  const int is_open = qrtool_open(&options, &context) == QRTOOL_OK;
  if (!is_open && argc > 2) {
    puts("SKIPPED: no OpenCL device");
    return 77;
  }
  EXPECT(is_open);
  if (context == NULL) return 1;
  if (argc > 1) state_of_chance = strtoull(argv[1], NULL, 10);
  a_line_is_fitted(context);
  dependent_columns_have_least_norm(context);
  if (types == 4) complex_numbers_are_complex(context);
  if (types == 4) a_ridge_leaves_a_complex_mean_alone(context);
  for (int type = 0; type < types; ++type)
    for (int order = 0; order < ORDERS; ++order) {
      solves(context, type, 3, 3, 20, 4, 1, NO_WEIGHTS, order);
      solves(context, type, 3, 3, 20, 4, 2, OF_ROWS, order);
      solves(context, type, 1, 40, 30, 5, 3, NO_WEIGHTS, order); /* one A for many b */
      solves(context, type, 1, 40, 30, 5, 3, OF_ENTRIES, order);
      solves(context, type, 4, 1, 30, 5, 2, NO_WEIGHTS, order); /* one B for many A */
      solves(context, type, 2, 2, 50, 3, 40, OF_ROWS, order);   /* many right sides each */
      solves(context, type, 2, 2, 40, 30, 2, OF_ENTRIES, order);
      solves(context, type, 2, 2, 3, 7, 2, NO_WEIGHTS, order);  /* least norm */
      solves(context, type, 1, 1, 60000, 6, 2, OF_ROWS, order); /* tall */
      solves(context, type, 1, 2, 60000, 6, 1, OF_ENTRIES, order);
    }
  draw(context, argc > 3 ? atoi(argv[3]) : argc > 2 ? 40 : argc > 1 ? 5000 : 200);
  qrtool_close(context);
  if (wrong_claims > 0) return 1;
  puts("all claims hold");
  return 0;
}
