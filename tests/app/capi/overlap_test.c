/* SPDX-License-Identifier: Apache-2.0
 * overlap_test.c: arrays that share memory are refused, and arrays that lie between each other are
 * not, beside a count of every byte. */
#include "expect.h"

enum { BYTES = 1 << 14 };
static unsigned char memory[BYTES];

/* Matrices at any place of the memory, with strides that keep their entries apart. */
static struct array somewhere(int type, int64_t count, int64_t rows, int64_t columns) {
  struct array a = {type, count, rows, columns, 0, 0, 0, BYTES, memory, NULL};
  const int64_t sizes[3] = {count, rows, columns};
  int64_t* strides[3];
  int64_t reach = 0, least = 0, size = (int64_t)element_size(type);
  int order[3] = {0, 1, 2};
  strides[0] = &a.matrix_stride;
  strides[1] = &a.row_stride;
  strides[2] = &a.column_stride;
  for (int i = 2; i > 0; --i) {
    const int j = (int)chance_below(i + 1), other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
  for (int i = 0; i < 3; ++i) {
    const int d = order[i];
    const int64_t gap = chance_below(2) ? 0 : chance_below(4);
    *strides[d] = reach + 1 + gap;
    reach += (sizes[d] - 1) * *strides[d];
    if (chance_below(3) == 0) {
      *strides[d] = -*strides[d];
      least += (sizes[d] - 1) * *strides[d];
    }
  }
  a.first = memory + size * (chance_below(chance_below(2) ? 8 : BYTES / 2 / size) - least);
  if (place_in(&a, 0, 0, 0) < (void*)memory || (reach + 1) * size > BYTES / 2) a.first = NULL;
  return a;
}

static void mark(const struct array* a, unsigned char* bytes, unsigned char bit) {
  for (int64_t b = 0; b < a->count; ++b)
    for (int64_t i = 0; i < a->rows; ++i)
      for (int64_t j = 0; j < a->columns; ++j) {
        const int64_t at = (unsigned char*)place_in(a, b, i, j) - memory;
        for (size_t k = 0; k < element_size(a->type); ++k) bytes[at + (int64_t)k] |= bit;
      }
}

static int share_bytes(const struct array* arrays, int number) {
  static unsigned char bytes[BYTES];
  memset(bytes, 0, sizeof bytes);
  for (int i = 0; i < number; ++i) mark(&arrays[i], bytes, (unsigned char)(1 << i));
  for (int at = 0; at < BYTES; ++at)
    if ((bytes[at] & (bytes[at] - 1)) != 0) return 1;
  return 0;
}

static int refused = 0, taken = 0;

static void places_by_chance(qrtool_context* context) {
  const int type = (int)chance_below(4);
  const int64_t count = 1 + chance_below(3), n = 1 + chance_below(3), m = n + chance_below(3);
  struct array arrays[3];
  arrays[0] = somewhere(type, count, m, n);
  arrays[1] = somewhere(type, count, m, n);
  arrays[2] = somewhere(type, count, n, n);
  if (chance_below(3) == 0) { /* columns of one array, and rows below them */
    arrays[1] = arrays[0];
    arrays[1].first += (int64_t)element_size(type) * chance_below(6);
  }
  for (int i = 0; i < 3; ++i)
    if (arrays[i].first == NULL) return;
  const int shared = share_bytes(arrays, 3);
  fill(&arrays[0]);
  struct array a = copy_of(&arrays[0], BY_ROWS), q = new_array(type, count, m, n, BY_ROWS);
  struct array r = new_array(type, count, n, n, BY_ROWS);
  qrtool_factors out = {0};
  out.size = sizeof out;
  out.q = place(&q);
  out.r = place(&r);
  qrtool_matrices of_a = matrices(&a);
  EXPECT(qrtool_factor(context, &of_a, NULL, &out) == QRTOOL_OK);
  of_a = matrices(&arrays[0]);
  out.q = place(&arrays[1]);
  out.r = place(&arrays[2]);
  EXPECT(qrtool_factor(context, &of_a, NULL, &out) == (shared ? QRTOOL_BAD_CALL : QRTOOL_OK));
  EXPECT(have_same_entries(&a, &arrays[0]));
  if (!shared) EXPECT(have_same_entries(&q, &arrays[1]) && have_same_entries(&r, &arrays[2]));
  ++*(shared ? &refused : &taken);
  free_array(&a);
  free_array(&q);
  free_array(&r);
}

static void every_pair_of_factor(qrtool_context* context) {
  double a[6] = {1, 2, 3, 4, 5, 7}, q[6], r[4], tau[2];
  int64_t p[2];
  qrtool_report reports[1];
  qrtool_factor_options options = {0};
  const qrtool_matrices of_a = {a, QRTOOL_FLOAT64, 0, 1, 3, 2, 0, 0, 0};
  const qrtool_factors good = {
      sizeof good, {q, 0, 0, 0}, {r, 0, 0, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, p, reports, 0};
  qrtool_factors out = good;
  options.size = sizeof options;
  options.pivoting = 1;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
  out.q.data = a; /* as LAPACK's geqrf does it */
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_BAD_CALL);
  EXPECT(strcmp(qrtool_error(), "q shares memory with a; give it memory of its own") == 0);
  out = good;
  out.r.data = a + 2;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_BAD_CALL);
  out = good;
  out.r.data = q + 5;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_BAD_CALL);
  out = good;
  out.p = (int64_t*)(a + 5);
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_BAD_CALL);
  out = good;
  out.reports = (qrtool_report*)q;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_BAD_CALL);
  out = good;
  out.v.data = a; /* which this mode leaves alone */
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
  options.pivoting = 0;
  out.p = (int64_t*)a;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_OK);
  options.mode = QRTOOL_RAW;
  out.tau.data = tau;
  EXPECT(qrtool_factor(context, &of_a, &options, &out) == QRTOOL_BAD_CALL);
  EXPECT(a[0] == 1 && a[5] == 7);
}

static void every_pair_of_solve(qrtool_context* context) {
  double a[8] = {1, 1, 1, 2, 1, 3, 1, 5}, b[4] = {1, 2, 3, 4}, w[4] = {1, 1, 1, 1}, x[2], errors[2];
  qrtool_solution solutions[1];
  const qrtool_matrices of_a = {a, QRTOOL_FLOAT64, 0, 1, 4, 2, 0, 0, 0};
  const qrtool_matrices of_b = {b, QRTOOL_FLOAT64, 0, 1, 4, 1, 0, 0, 0};
  const qrtool_matrices of_w = {w, QRTOOL_FLOAT64, 0, 1, 4, 1, 0, 0, 0};
  const qrtool_solutions good = {sizeof good, {x, 0, 0, 0}, {errors, 0, 0, 0}, solutions, 0};
  void* const inputs[] = {a + 7, b + 3, w};
  qrtool_solutions out = good;
  EXPECT(qrtool_solve(context, &of_a, &of_b, &of_w, NULL, &out) == QRTOOL_OK);
  for (int i = 0; i < 3; ++i) {
    out = good;
    out.x.data = inputs[i];
    EXPECT(qrtool_solve(context, &of_a, &of_b, &of_w, NULL, &out) == QRTOOL_BAD_CALL);
    out = good;
    out.errors.data = inputs[i];
    EXPECT(qrtool_solve(context, &of_a, &of_b, &of_w, NULL, &out) == QRTOOL_BAD_CALL);
  }
  out = good;
  out.errors.data = x + 1;
  EXPECT(qrtool_solve(context, &of_a, &of_b, &of_w, NULL, &out) == QRTOOL_BAD_CALL);
  out = good;
  out.solutions = (qrtool_solution*)b;
  EXPECT(qrtool_solve(context, &of_a, &of_b, &of_w, NULL, &out) == QRTOOL_BAD_CALL);
  out = good; /* one column each of one array */
  double both[4];
  out.x.data = both;
  out.errors.data = both + 1;
  out.x.row_stride = out.errors.row_stride = 2;
  out.x.column_stride = out.errors.column_stride = 1;
  EXPECT(qrtool_solve(context, &of_a, &of_b, &of_w, NULL, &out) == QRTOOL_OK);
}

static void a_report_of_verify(qrtool_context* context) {
  double a[4] = {3, 0, 0, 2}, q[4] = {1, 0, 0, 1};
  const qrtool_matrices of_a = {a, QRTOOL_FLOAT64, 0, 1, 2, 2, 0, 0, 0};
  const qrtool_matrices of_q = {q, QRTOOL_FLOAT64, 0, 1, 2, 2, 0, 0, 0};
  qrtool_given_factors given = {0};
  qrtool_report report;
  given.size = sizeof given;
  given.q = &of_q;
  given.r = &of_a; /* what is read may be the same */
  EXPECT(qrtool_verify(context, &of_a, &given, NULL, &report, 0) == QRTOOL_OK);
  EXPECT(qrtool_verify(context, &of_a, &given, NULL, (qrtool_report*)q, 8) == QRTOOL_BAD_CALL);
}

static void column_0_of_an_intercept(qrtool_context* context) {
  double a[8] = {1, 1, 1, 2, 1, 3, 1, 5}, b[4] = {1, 2, 3, 4}, x[2];
  const qrtool_matrices of_a = {a, QRTOOL_FLOAT64, 0, 1, 4, 2, 0, 0, 0};
  const qrtool_matrices of_b = {b, QRTOOL_FLOAT64, 0, 1, 4, 1, 0, 0, 0};
  const qrtool_solutions out = {sizeof out, {x, 0, 0, 0}, {NULL, 0, 0, 0}, NULL, 0};
  qrtool_solve_options options = {0};
  options.size = sizeof options;
  options.intercept = 1;
  EXPECT(qrtool_solve(context, &of_a, &of_b, NULL, &options, &out) == QRTOOL_OK);
  a[4] = 2;
  EXPECT(qrtool_solve(context, &of_a, &of_b, NULL, &options, &out) == QRTOOL_BAD_INPUT);
  EXPECT(strstr(qrtool_error(), "2 stands at (0, 2, 0)") != NULL);
  a[4] = NAN;
  options.skip_missing = 1;
  EXPECT(qrtool_solve(context, &of_a, &of_b, NULL, &options, &out) == QRTOOL_OK);
}

int main(int argc, char** argv) {
  qrtool_context* context = NULL;
  qrtool_context_options options = {0};
  options.size = sizeof options;
  options.device = "cpu";
  options.threads = 1;
  EXPECT(qrtool_open(&options, &context) == QRTOOL_OK);
  if (context == NULL) return 1;
  if (argc > 1) state_of_chance = strtoull(argv[1], NULL, 10);
  for (int i = 0; i < (argc > 1 ? 200000 : 4000); ++i) places_by_chance(context);
  EXPECT(refused > 300 && taken > 300);
  every_pair_of_factor(context);
  every_pair_of_solve(context);
  a_report_of_verify(context);
  column_0_of_an_intercept(context);
  qrtool_close(context);
  options.memory_bytes = (uint64_t)-1;
  EXPECT(qrtool_open(&options, &context) == QRTOOL_BAD_CALL);
  if (wrong_claims > 0) return 1;
  puts("all claims hold");
  return 0;
}
