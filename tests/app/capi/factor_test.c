/* SPDX-License-Identifier: Apache-2.0
 * factor_test.c: qrtool_factor and qrtool_verify of the C interface as a C program calls them. */
#include "expect.h"

/* ||A - QR|| / ||A||, by the plainest loops. */
static double residual(const struct array* a, const struct array* q, const struct array* r,
                       int64_t b) {
  const int is_complex = parts_of(a->type) == 2;
  double squares = 0, norm = 0;
  for (int64_t i = 0; i < a->rows; ++i)
    for (int64_t j = 0; j < a->columns; ++j) {
      double re = part(a, b, i, j, 0), im = is_complex ? part(a, b, i, j, 1) : 0;
      norm += re * re + im * im;
      for (int64_t l = 0; l < r->rows; ++l) {
        const double qr = part(q, b, i, l, 0), qi = is_complex ? part(q, b, i, l, 1) : 0;
        const double rr = part(r, b, l, j, 0), ri = is_complex ? part(r, b, l, j, 1) : 0;
        re -= qr * rr - qi * ri;
        im -= qr * ri + qi * rr;
      }
      squares += re * re + im * im;
    }
  return norm == 0 ? 0 : sqrt(squares / norm);
}

/* ||I - Q'Q|| */
static double orthogonality(const struct array* q, int64_t b) {
  const int is_complex = parts_of(q->type) == 2;
  double squares = 0;
  for (int64_t j = 0; j < q->columns; ++j)
    for (int64_t l = 0; l < q->columns; ++l) {
      double re = j == l ? 1 : 0, im = 0;
      for (int64_t i = 0; i < q->rows; ++i) {
        const double xr = part(q, b, i, j, 0), xi = is_complex ? part(q, b, i, j, 1) : 0;
        const double yr = part(q, b, i, l, 0), yi = is_complex ? part(q, b, i, l, 1) : 0;
        re -= xr * yr + xi * yi;
        im -= xr * yi - xi * yr;
      }
      squares += re * re + im * im;
    }
  return sqrt(squares);
}

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

static void factors_in_every_order(qrtool_context* context, int type, int mode, int64_t count,
                                   int64_t m, int64_t n) {
  const int64_t k = least(m, n), q_columns = mode == QRTOOL_COMPLETE ? m : k;
  struct array a = new_array(type, count, m, n, BY_ROWS);
  struct array q = new_array(type, count, m, q_columns, BY_ROWS);
  struct array r = new_array(type, count, mode == QRTOOL_COMPLETE ? m : k, n, BY_ROWS);
  qrtool_report* reports = calloc((size_t)count + 1, sizeof *reports);
  qrtool_factor_options options = {.size = sizeof options};
  qrtool_factors out = {0};
  qrtool_given_factors given = {0};
  qrtool_matrices of_a, of_q, of_r;
  const double u = part_size(type) == 8 ? 0x1p-52 : 0x1p-23;
  const double bar = u * (double)least(m > 16 ? m : 16, 30 * k);
  options.mode = mode;
  fill(&a);
  out.size = sizeof out;
  out.reports = reports;
  if (mode != QRTOOL_R) out.q = place(&q);
  out.r = place(&r);
  of_a = matrices(&a);
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
  for (int64_t b = 0; b < count; ++b) {
    const qrtool_report* report = &reports[b];
    EXPECT(report->status == QRTOOL_GOOD);
    EXPECT(report->residual <= report->residual_bar);
    EXPECT(report->orthogonality_bar == bar || mode == QRTOOL_R);
    for (int64_t i = 0; i < r.rows; ++i)
      for (int64_t j = 0; j < n && j <= i; ++j)
        EXPECT(j == i ? part(&r, b, i, j, 0) >= 0 : part(&r, b, i, j, 0) == 0);
    if (mode == QRTOOL_R) continue;
    EXPECT(residual(&a, &q, &r, b) <= report->residual_bar);
    EXPECT(orthogonality(&q, b) <= report->orthogonality_bar);
    EXPECT(fabs(residual(&a, &q, &r, b) - report->residual) <= 0.1 * report->residual_bar);
  }
  for (int order = 0; order < ORDERS; ++order) {
    struct array a2 = copy_of(&a, order), a3 = copy_of(&a, order);
    struct array q2 = new_array(type, count, m, q_columns, (order + 2) % ORDERS);
    struct array r2 = new_array(type, count, r.rows, n, (order + 1) % ORDERS);
    of_a = matrices(&a2);
    if (mode != QRTOOL_R) out.q = place(&q2);
    out.r = place(&r2);
    EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
    EXPECT(have_same_entries(&r, &r2));
    EXPECT(mode == QRTOOL_R || have_same_entries(&q, &q2));
    EXPECT(keeps_its_padding(&q2) && keeps_its_padding(&r2));
    EXPECT(memcmp(a2.memory, a3.memory, a2.bytes) == 0);
    of_q = matrices(&q2);
    of_r = matrices(&r2);
    given.size = sizeof given;
    given.q = mode == QRTOOL_R ? NULL : &of_q;
    given.r = &of_r;
    memset(reports, POISON, (size_t)count * sizeof *reports);
    EXPECT(qrtool_verify(context, &of_a, &given, NULL, reports, 0) == QRTOOL_OK);
    for (int64_t b = 0; b < count; ++b) EXPECT(reports[b].status == QRTOOL_GOOD);
    if (count > 0 && k > 0) { /* another R is not A's */
      set_part(&r2, count - 1, 0, 0, 0, part(&r2, count - 1, 0, 0, 0) + 1);
      EXPECT(qrtool_verify(context, &of_a, &given, NULL, reports, 0) == QRTOOL_NOT_ALL_GOOD);
      EXPECT(reports[count - 1].status == QRTOOL_ABOVE_BAR);
      EXPECT(count < 2 || reports[0].status == QRTOOL_GOOD);
    }
    free_array(&a2);
    free_array(&a3);
    free_array(&q2);
    free_array(&r2);
  }
  free_array(&a);
  free_array(&q);
  free_array(&r);
  free(reports);
}

static void reflectors_are_verified(qrtool_context* context, int type) {
  struct array a = new_array(type, 3, 20, 6, BY_ROWS), v = new_array(type, 3, 20, 6, BY_COLUMNS);
  struct array tau = new_array(type, 3, 1, 6, BY_ROWS);
  qrtool_factor_options options = {.size = sizeof options, .mode = QRTOOL_RAW};
  qrtool_factors out = {0};
  qrtool_given_factors given = {0};
  qrtool_matrices of_a, of_v, of_tau;
  fill(&a);
  of_a = matrices(&a);
  out.size = sizeof out;
  out.v = place(&v);
  out.tau = place(&tau);
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
  of_v = matrices(&v);
  of_tau = matrices(&tau);
  given.size = sizeof given;
  given.v = &of_v;
  given.tau = &of_tau;
  EXPECT(qrtool_verify(context, &of_a, &given, NULL, NULL, 0) == QRTOOL_OK);
  given.tau = NULL;
  EXPECT(qrtool_verify(context, &of_a, &given, NULL, NULL, 0) == QRTOOL_BAD_CALL);
  free_array(&a);
  free_array(&v);
  free_array(&tau);
}

/* Shapes and types follow each other in one context. */
static void every_shape_is_pivoted(qrtool_context* context) {
  for (int64_t m = 1; m < 60; m += 7) {
    const int type = (int)(m % 4);
    struct array a = new_array(type, 2, m, 3 * m, BY_ROWS);
    struct array r = new_array(type, 2, m, 3 * m, PADDED);
    int64_t* p = calloc((size_t)(6 * m), sizeof *p);
    qrtool_factor_options options = {.size = sizeof options, .mode = QRTOOL_R, .pivoting = 1};
    qrtool_factors out = {0};
    qrtool_matrices of_a;
    fill(&a);
    of_a = matrices(&a);
    out.size = sizeof out;
    out.r = place(&r);
    out.p = p;
    EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
    EXPECT(keeps_its_padding(&r));
    free_array(&a);
    free_array(&r);
    free(p);
  }
}

static void columns_are_pivoted(qrtool_context* context, int type) {
  struct array a = new_array(type, 2, 9, 4, BY_ROWS);
  struct array q = new_array(type, 2, 9, 4, BY_ROWS);
  struct array r = new_array(type, 2, 4, 4, BY_ROWS);
  int64_t p[8] = {0};
  qrtool_report reports[2];
  qrtool_factor_options options = {.size = sizeof options, .pivoting = 1, .condition = 1};
  qrtool_factors out = {0};
  qrtool_given_factors given = {0};
  qrtool_matrices of_a, of_q, of_r;
  fill(&a);
  /* column 2 of matrix 0 leads; its column 3 depends on it */
  for (int64_t i = 0; i < 9; ++i)
    for (size_t half = 0; half < parts_of(type); ++half) {
      set_part(&a, 0, i, 2, half, 100 * part(&a, 0, i, 2, half));
      set_part(&a, 0, i, 3, half, 2 * part(&a, 0, i, 2, half));
    }
  of_a = matrices(&a);
  out.size = sizeof out;
  out.q = place(&q);
  out.r = place(&r);
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_BAD_CALL); /* p is NULL */
  out.p = p;
  out.reports = reports;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
  EXPECT(p[0] == 3 && reports[0].rank == 3 && reports[1].rank == 4);
  EXPECT(reports[0].condition > 1e12 && reports[1].condition < 1e6);
  of_q = matrices(&q);
  of_r = matrices(&r);
  given.size = sizeof given;
  given.q = &of_q;
  given.r = &of_r;
  EXPECT(qrtool_verify(context, &of_a, &given, NULL, NULL, 0) == QRTOOL_NOT_ALL_GOOD);
  given.p = p;
  EXPECT(qrtool_verify(context, &of_a, &given, NULL, NULL, 0) == QRTOOL_OK);
  p[0] = 1;
  p[1] = 1;
  EXPECT(qrtool_verify(context, &of_a, &given, NULL, NULL, 0) == QRTOOL_BAD_INPUT);
  free_array(&a);
  free_array(&q);
  free_array(&r);
}

static void a_bad_matrix_stays_alone(qrtool_context* context) {
  struct array a = new_array(QRTOOL_FLOAT32, 3, 8, 3, BY_ROWS);
  struct array r = new_array(QRTOOL_FLOAT32, 3, 3, 3, BY_ROWS), clean = r;
  qrtool_factor_options options = {.size = sizeof options, .mode = QRTOOL_R};
  qrtool_factors out = {0};
  qrtool_report reports[3];
  qrtool_matrices of_a;
  clean = new_array(QRTOOL_FLOAT32, 3, 3, 3, BY_ROWS);
  fill(&a);
  of_a = matrices(&a);
  out.size = sizeof out;
  out.r = place(&clean);
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
  set_part(&a, 1, 2, 2, 0, NAN);
  out.r = place(&r);
  out.reports = reports;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_NOT_ALL_GOOD);
  EXPECT(reports[0].status == QRTOOL_GOOD && reports[2].status == QRTOOL_GOOD);
  EXPECT(reports[1].status == QRTOOL_NON_FINITE && isnan(part(&r, 1, 0, 0, 0)));
  EXPECT(memcmp(place_in(&r, 0, 0, 0), place_in(&clean, 0, 0, 0), 9 * sizeof(float)) == 0);
  EXPECT(memcmp(place_in(&r, 2, 0, 0), place_in(&clean, 2, 0, 0), 9 * sizeof(float)) == 0);
  EXPECT(strcmp(qrtool_status_name(reports[1].status), "non_finite") == 0);
  free_array(&a);
  free_array(&r);
  free_array(&clean);
}

static void wrong_calls_are_refused(qrtool_context* context) {
  double numbers[12] = {0}, q[12], r[9];
  qrtool_matrices a = {0};
  qrtool_factors out = {0};
  qrtool_factor_options options = {0};
  struct {
    qrtool_factor_options known;
    int64_t later;
  } newer = {{.size = sizeof newer}, 0};
  a.data = numbers;
  a.count = 1;
  a.rows = 4;
  a.columns = 3;
  out.size = sizeof out;
  out.q.data = q;
  out.r.data = r;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_OK);
  EXPECT(qrtool_factor(NULL, &a, NULL, &out) == QRTOOL_BAD_CALL);
  EXPECT(qrtool_factor(context, NULL, NULL, &out) == QRTOOL_BAD_CALL);
  EXPECT(qrtool_factor(context, &a, NULL, NULL) == QRTOOL_BAD_CALL);
  EXPECT(qrtool_factor(context, &a, &options, &out) == QRTOOL_BAD_CALL);
  EXPECT(strstr(qrtool_error(), "size") != NULL);
  /* A caller with a newer header: what is unknown here must be 0. */
  EXPECT(qrtool_factor(context, &a, &newer.known, &out) == QRTOOL_OK);
  newer.later = 1;
  EXPECT(qrtool_factor(context, &a, &newer.known, &out) == QRTOOL_BAD_CALL);
  /* A caller with an older one. */
  options.size = offsetof(qrtool_factor_options, pivoting);
  EXPECT(qrtool_factor(context, &a, &options, &out) == QRTOOL_OK);
  options.mode = 4;
  EXPECT(qrtool_factor(context, &a, &options, &out) == QRTOOL_BAD_CALL);
  options.mode = QRTOOL_RAW;
  EXPECT(qrtool_factor(context, &a, &options, &out) == QRTOOL_BAD_CALL); /* v is NULL */
  options.mode = 0;
  a.type = 9;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_BAD_CALL);
  a.type = 0;
  a.rows = -1;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_BAD_CALL);
  a.rows = INT64_MAX / 4;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_BAD_CALL);
  a.rows = 4;
  a.data = (const char*)numbers + 4;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_BAD_CALL); /* not aligned */
  a.data = NULL;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_BAD_CALL);
  a.count = 0;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_OK);
  a.count = 1;
  a.data = numbers;
  out.q.row_stride = 2; /* rows of 3 share memory */
  out.q.column_stride = 1;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_BAD_CALL);
  out.q.data = NULL; /* Q is not wanted */
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_OK);
  out.r.data = NULL;
  EXPECT(qrtool_factor(context, &a, NULL, &out) == QRTOOL_BAD_CALL);
}

static int calls = 0;
static int stop_at_second(void* user) {
  ++calls;
  return calls < *(int*)user;
}

static void a_long_call_can_be_stopped(void) {
  const int64_t count = 200000;
  float *a = calloc((size_t)count * 9, sizeof *a), *r = calloc((size_t)count * 9, sizeof *r);
  int end = 2;
  qrtool_context_options options = {0};
  qrtool_context* context = NULL;
  qrtool_factor_options mode = {.size = sizeof mode, .mode = QRTOOL_R};
  qrtool_matrices of_a = {0};
  qrtool_factors out = {0};
  options.size = sizeof options;
  options.device = "cpu";
  options.keep_going = stop_at_second;
  options.user = &end;
  EXPECT(qrtool_open(&options, &context) == QRTOOL_OK);
  of_a.data = a;
  of_a.type = QRTOOL_FLOAT32;
  of_a.count = count;
  of_a.rows = of_a.columns = 3;
  out.size = sizeof out;
  out.r.data = r;
  EXPECT(qrtool_factor(context, &of_a, &mode, &out) == QRTOOL_STOPPED);
  EXPECT(calls == 2);
  end = 1 << 30;
  EXPECT(qrtool_factor(context, &of_a, &mode, &out) == QRTOOL_OK);
  qrtool_close(context);
  free(a);
  free(r);
}

static void contexts_open_and_close(void) {
  qrtool_context* context = NULL;
  qrtool_context_options options = {0};
  qrtool_run run = {0};
  double a[6] = {1, 2, 3, 4, 5, 7}, r[4];
  qrtool_matrices of_a = {0};
  qrtool_factors out = {0};
  qrtool_factor_options mode = {.size = sizeof mode, .mode = QRTOOL_R};
  EXPECT(qrtool_open(&options, &context) == QRTOOL_BAD_CALL && context == NULL);
  options.size = sizeof options;
  options.device = "no such device";
  EXPECT(qrtool_open(&options, &context) == QRTOOL_NO_DEVICE && context == NULL);
  EXPECT(strlen(qrtool_error()) > 0 && strchr(qrtool_error(), '\n') == NULL);
  options.device = "cpu";
  options.threads = -1;
  EXPECT(qrtool_open(&options, &context) == QRTOOL_BAD_CALL);
  options.threads = 3;
  options.memory_bytes = 4096;
  EXPECT(qrtool_open(&options, &context) == QRTOOL_OK);
  of_a.data = a;
  of_a.count = 1;
  of_a.rows = 3;
  of_a.columns = 2;
  out.size = sizeof out;
  out.r.data = r;
  EXPECT(qrtool_factor(context, &of_a, &mode, &out) == QRTOOL_OK ||
         strstr(qrtool_error(), "memory_bytes") != NULL);
  qrtool_close(context);
  EXPECT(qrtool_open(NULL, &context) == QRTOOL_OK);
  EXPECT(qrtool_factor(context, &of_a, &mode, &out) == QRTOOL_OK);
  EXPECT(fabs(r[0] * r[0] - 35) < 1e-12);
  EXPECT(qrtool_last_run(context, &run) == QRTOOL_BAD_CALL);
  run.size = sizeof run;
  EXPECT(qrtool_last_run(context, &run) == QRTOOL_OK);
  EXPECT(strcmp(run.backend, "cpu") == 0 && strncmp(run.variant, "cpu/", 4) == 0);
  EXPECT(strlen(run.device) > 0 && strlen(run.arithmetic) > 0 && strlen(run.reason) > 0);
  /* The texts stay while the context goes on, which another thread may use. */
  char variant[64] = "";
  strncat(variant, run.variant, sizeof variant - 1);
  const char* const text = run.variant;
  double* const tall = calloc(300000 * 2, sizeof *tall);
  of_a.data = tall;
  of_a.rows = 300000;
  EXPECT(qrtool_factor(context, &of_a, &mode, &out) == QRTOOL_OK);
  EXPECT(strcmp(text, variant) == 0);
  EXPECT(qrtool_last_run(context, &run) == QRTOOL_OK && strcmp(run.variant, variant) != 0);
  free(tall);
  qrtool_close(context);
  qrtool_close(NULL);
  EXPECT(qrtool_abi() == QRTOOL_ABI && strlen(qrtool_version()) > 0);
  EXPECT(strcmp(qrtool_status_name(0), "ok") == 0 && strcmp(qrtool_status_name(99), "") == 0);
}

/* Shapes, types, modes and orders by chance. */
static void draw(qrtool_context* context, int draws) {
  for (int i = 0; i < draws; ++i) {
    const int is_large = chance_below(20) == 0;
    const int64_t most = is_large ? 120 : 12;
    const int type = (int)chance_below(4), mode = (int)chance_below(3);
    const int64_t count = is_large ? 1 + chance_below(2) : chance_below(5);
    factors_in_every_order(context, type, mode, count, chance_below(most), chance_below(most));
  }
}

int main(int argc, char** argv) {
  qrtool_context* context = NULL;
  qrtool_context_options options = {0};
  options.size = sizeof options;
  options.device = argc > 2 ? argv[2] : "cpu";
  options.threads = 2;
  EXPECT(qrtool_open(&options, &context) == QRTOOL_OK);
  if (context == NULL) return 1;
  if (argc > 1) state_of_chance = strtoull(argv[1], NULL, 10);
  contexts_open_and_close();
  wrong_calls_are_refused(context);
  for (int type = 0; type < 4; ++type) {
    factors_in_every_order(context, type, QRTOOL_REDUCED, 3, 10, 4);
    factors_in_every_order(context, type, QRTOOL_COMPLETE, 2, 7, 3);
    factors_in_every_order(context, type, QRTOOL_R, 2, 3, 9);
    factors_in_every_order(context, type, QRTOOL_REDUCED, 1, 200, 150);
    factors_in_every_order(context, type, QRTOOL_REDUCED, 2, 0, 3);
    factors_in_every_order(context, type, QRTOOL_COMPLETE, 2, 3, 0);
    reflectors_are_verified(context, type);
  }
  for (int type = 0; type < 4; ++type) /* one shape in every type */
    factors_in_every_order(context, type, QRTOOL_REDUCED, 40, 24, 8);
  for (int type = 0; type < 4; ++type)
    factors_in_every_order(context, type, QRTOOL_COMPLETE, 2, 5, 0);
  columns_are_pivoted(context, QRTOOL_FLOAT64);
  columns_are_pivoted(context, QRTOOL_COMPLEX128);
  every_shape_is_pivoted(context);
  a_bad_matrix_stays_alone(context);
  a_long_call_can_be_stopped();
  draw(context, argc > 1 ? 2000 : 100);
  qrtool_close(context);
  if (wrong_claims > 0) return 1;
  puts("all claims hold");
  return 0;
}
