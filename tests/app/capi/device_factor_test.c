/* SPDX-License-Identifier: Apache-2.0
 * device_factor_test.c: qrtool_factor of arrays in the memory of a device. What it gives has the
 * bits that host arrays have in the same context, and nothing else is written. */
#include "on_device.h"

static qrtool_context* context = NULL;

static struct array zeros(int type, int64_t count, int64_t rows, int64_t columns, int order) {
  return new_array(type, count, rows, columns, order);
}

/* The same call with host arrays and with device arrays. */
struct both {
  struct array a, q, r, v, tau;
  struct device_array on_a, on_q, on_r, on_v, on_tau;
  qrtool_report *reports, *on_reports;
  int64_t *p, *on_p;
  int code, on_code;
};

static struct both factor_both(struct array a, qrtool_factor_options o, int order, size_t shift,
                               int wants_reports) {
  const int64_t m = a.rows, n = a.columns, k = m < n ? m : n, c = a.count;
  struct both b;
  qrtool_matrices of_a = matrices(&a), on_a;
  qrtool_factors out = {0}, on_out = {0};
  memset(&b, 0, sizeof b);
  b.a = a;
  b.q = zeros(a.type, c, m, o.mode == QRTOOL_COMPLETE ? m : k, order);
  b.r = zeros(a.type, c, o.mode == QRTOOL_COMPLETE ? m : k, n, order);
  b.v = zeros(a.type, c, m, n, order);
  b.tau = zeros(a.type, c, 1, k, order);
  b.reports = calloc((size_t)c + 1, sizeof *b.reports);
  b.on_reports = calloc((size_t)c + 1, sizeof *b.reports);
  b.p = calloc((size_t)(c * n) + 1, sizeof *b.p);
  b.on_p = calloc((size_t)(c * n) + 1, sizeof *b.p);
  b.on_a = shifted_on_device(&a, shift);
  b.on_q = shifted_on_device(&b.q, shift);
  b.on_r = shifted_on_device(&b.r, shift);
  b.on_v = shifted_on_device(&b.v, shift);
  b.on_tau = shifted_on_device(&b.tau, shift);
  out.size = on_out.size = sizeof out;
  out.q = place(&b.q);
  out.r = place(&b.r);
  out.v = place(&b.v);
  out.tau = place(&b.tau);
  out.p = b.p;
  out.reports = wants_reports ? b.reports : NULL;
  on_out.q = device_place(&b.on_q);
  on_out.r = device_place(&b.on_r);
  on_out.v = device_place(&b.on_v);
  on_out.tau = device_place(&b.on_tau);
  on_out.p = b.on_p;
  on_out.reports = wants_reports ? b.on_reports : NULL;
  on_a = device_matrices(&b.on_a);
  o.size = sizeof o;
  b.on_code = qrtool_factor(context, &on_a, &o, &on_out);
  o.stream = NULL;
  o.no_wait = 0;
  b.code = qrtool_factor(context, &of_a, &o, &out);
  return b;
}

static int have_same_reports(const struct both* b) {
  for (int64_t i = 0; i < b->a.count; ++i) {
    const qrtool_report *one = &b->reports[i], *other = &b->on_reports[i];
    if (memcmp(one, other, sizeof *one) != 0) {
      printf(
          "report %d: residual %g %g, orthogonality %g %g, lower %g %g, status %d %d, tries %d "
          "%d, scale %d %d, rank %d %d\n",
          (int)i, one->residual, other->residual, one->orthogonality, other->orthogonality,
          one->lower, other->lower, one->status, other->status, one->tries, other->tries,
          one->scale, other->scale, one->rank, other->rank);
      return 0;
    }
  }
  return 1;
}

static void free_both(struct both* b) {
  struct array* arrays[] = {&b->q, &b->r, &b->v, &b->tau};
  struct device_array* on[] = {&b->on_a, &b->on_q, &b->on_r, &b->on_v, &b->on_tau};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free_array(arrays[i]);
  for (size_t i = 0; i < sizeof on / sizeof *on; ++i) free_device_array(on[i]);
  free(b->reports);
  free(b->on_reports);
  free(b->p);
  free(b->on_p);
}

/* Of a call that has worked, whatever it has found. */
static void expect_same(const struct both* b) {
  EXPECT(b->on_code == b->code);
  EXPECT(has_bytes_of(&b->on_a, &b->a));
  EXPECT(has_bytes_of(&b->on_q, &b->q));
  EXPECT(has_bytes_of(&b->on_r, &b->r));
  EXPECT(has_bytes_of(&b->on_v, &b->v));
  EXPECT(has_bytes_of(&b->on_tau, &b->tau));
  EXPECT(have_same_reports(b));
  EXPECT(memcmp(b->p, b->on_p, (size_t)(b->a.count * b->a.columns) * sizeof *b->p) == 0);
}

static void compare(struct array a, qrtool_factor_options o, int order, size_t shift,
                    int wants_reports) {
  struct both b = factor_both(a, o, order, shift, wants_reports);
  const int before = wrong_claims;
  expect_same(&b);
  if (wrong_claims > before)
    printf("  type %d, %d of %dx%d, mode %d, sign %d, check %d, pivoting %d, order %d, shift %d\n",
           a.type, (int)a.count, (int)a.rows, (int)a.columns, o.mode, o.sign, o.check, o.pivoting,
           order, (int)shift);
  free_both(&b);
}

static struct array random_array(int type, int64_t count, int64_t rows, int64_t columns,
                                 int order) {
  struct array a = new_array(type, count, rows, columns, order);
  fill(&a);
  return a;
}

static void every_mode(void) {
  for (int type = QRTOOL_FLOAT64; type <= QRTOOL_COMPLEX64; ++type)
    for (int mode = QRTOOL_REDUCED; mode <= QRTOOL_RAW; ++mode)
      for (int sign = QRTOOL_USUAL_SIGN; sign <= QRTOOL_LAPACK; ++sign) {
        qrtool_factor_options o = {0};
        struct array a = random_array(type, 5, 12, 7, BY_ROWS);
        o.mode = mode;
        o.sign = sign;
        if (mode == QRTOOL_RAW && sign == QRTOOL_POSITIVE) continue;
        compare(a, o, BY_ROWS, 0, 1);
        free_array(&a);
      }
}

static void every_order(void) {
  for (int type = QRTOOL_FLOAT64; type <= QRTOOL_COMPLEX64; ++type)
    for (int order = BY_ROWS; order < ORDERS; ++order)
      for (int mode = QRTOOL_REDUCED; mode <= QRTOOL_RAW; mode += 3) {
        qrtool_factor_options o = {0};
        struct array a = random_array(type, 5, 9, 4, order);
        o.mode = mode;
        compare(a, o, (order + 1) % ORDERS, 0, 1);
        compare(a, o, order, part_size(type), 1);
        free_array(&a);
      }
}

static void every_shape(void) {
  const int64_t shapes[][3] = {{1, 1, 1},  {3, 1, 5},   {3, 5, 1},  {0, 4, 4},
                               {2, 0, 3},  {2, 3, 0},   {2, 8, 20}, {1, 64, 64},
                               {7, 33, 8}, {1, 300, 5}, {1, 40, 90}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
    for (int mode = QRTOOL_REDUCED; mode <= QRTOOL_RAW; ++mode) {
      qrtool_factor_options o = {0};
      struct array a =
          random_array(QRTOOL_FLOAT32, shapes[i][0], shapes[i][1], shapes[i][2], BY_ROWS);
      o.mode = mode;
      compare(a, o, BY_ROWS, 0, 1);
      o.check = QRTOOL_NO_CHECK;
      compare(a, o, BY_ROWS, 0, 1);
      compare(a, o, BY_ROWS, 0, 0);
      free_array(&a);
    }
}

static void pivoting_and_condition(void) {
  for (int type = QRTOOL_FLOAT64; type <= QRTOOL_COMPLEX64; ++type) {
    qrtool_factor_options o = {0};
    struct array a = random_array(type, 4, 11, 6, PADDED);
    o.pivoting = 1;
    o.condition = 1;
    compare(a, o, BY_COLUMNS, 0, 1);
    free_array(&a);
  }
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {{"modes", every_mode},
               {"orders", every_order},
               {"shapes", every_shape},
               {"pivoting", pivoting_and_condition}};
  qrtool_context_options o = {0};
  if (!open_cuda()) {
    printf("no CUDA\n");
    return 77;
  }
  o.size = sizeof o;
  o.device = "cuda:0";
  if (qrtool_open(&o, &context) != QRTOOL_OK) {
    fprintf(stderr, "%s\n", qrtool_error());
    return 77;
  }
  for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
    if (argc > 1 && strcmp(argv[1], tests[i].name) != 0) continue;
    printf("%s\n", tests[i].name);
    fflush(stdout);
    tests[i].run();
  }
  qrtool_close(context);
  return close_cuda();
}
