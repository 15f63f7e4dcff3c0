/* SPDX-License-Identifier: Apache-2.0
 * device_verify_test.c: qrtool_verify of arrays in the memory of a device says what it says of host
 * arrays. */
#include "on_device.h"

static qrtool_context* context = NULL;

static int is_near(double one, double other, double noise) {
  if (isnan(one) || isnan(other)) return isnan(one) && isnan(other);
  return fabs(one - other) <= 1e-3 * fabs(other) + noise;
}

static void expect_same(const qrtool_report* one, const qrtool_report* other) {
  const double noise = 8 * 0x1p-52 * 8;
  EXPECT(one->status == other->status);
  EXPECT(one->scale == other->scale);
  EXPECT(one->rank == other->rank && one->tries == other->tries);
  EXPECT(is_near(one->residual, other->residual, noise));
  EXPECT(is_near(one->orthogonality, other->orthogonality, noise));
  EXPECT(is_near(one->lower, other->lower, noise));
  EXPECT(is_near(one->diagonal_ratio, other->diagonal_ratio, noise));
  EXPECT(is_near(one->residual_bar, other->residual_bar, 0));
  EXPECT(is_near(one->orthogonality_bar, other->orthogonality_bar, 0));
  EXPECT(is_near(one->lower_bar, other->lower_bar, 0));
}

/* Which factors are given. */
enum { Q_AND_R, R_ALONE, V_AND_TAU, COMPLETE, R_OF_COMPLETE, WITH_P, SHAPES };

static void verify_both(int type, int factors_type, int shape, int order, qrtool_verify_options o) {
  const int64_t m = 14, n = 6, count = 6;
  const int is_complete = shape == COMPLETE || shape == R_OF_COMPLETE;
  struct array a = new_array(type, count, m, n, order), wide = {0};
  struct array q = new_array(factors_type, count, m, is_complete ? m : n, order),
               r = new_array(factors_type, count, is_complete ? m : n, n, order),
               v = new_array(factors_type, count, m, n, order),
               tau = new_array(factors_type, count, 1, n, order);
  int64_t p[6 * 6];
  qrtool_report reports[6], on_reports[6];
  qrtool_factor_options of_factor = {0};
  qrtool_factors out = {0};
  qrtool_given_factors given = {0}, on_given = {0};
  qrtool_matrices ms[5], on_ms[5];
  struct array* arrays[5] = {&a, &q, &r, &v, &tau};
  struct device_array on[5];
  int code, on_code;
  fill(&a);
  /* Factors of A in their own type. */
  wide = new_array(factors_type, count, m, n, BY_ROWS);
  for (int64_t b = 0; b < count; ++b)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (size_t c = 0; c < parts_of(type); ++c) {
          if (part_size(type) == 8 && part_size(factors_type) == 4)
            set_part(&a, b, i, j, c, (double)(float)part(&a, b, i, j, c));
          set_part(&wide, b, i, j, c, part(&a, b, i, j, c));
        }
  ms[0] = matrices(&wide);
  of_factor.size = sizeof of_factor;
  of_factor.mode = shape == V_AND_TAU ? QRTOOL_RAW : is_complete ? QRTOOL_COMPLETE : QRTOOL_REDUCED;
  of_factor.pivoting = shape == WITH_P;
  out.size = sizeof out;
  out.q = place(&q);
  out.r = place(&r);
  out.v = place(&v);
  out.tau = place(&tau);
  out.p = p;
  EXPECT(qrtool_factor(context, &ms[0], &of_factor, &out) == QRTOOL_OK);
  /* Matrix 1 is not factored well, 2 is not finite, and R of 3 neither; 4 is not triangular. */
  set_part(&r, 1, 0, 1, 0, part(&r, 1, 0, 1, 0) + 0.25);
  set_part(&v, 1, 0, 1, 0, part(&v, 1, 0, 1, 0) + 0.25);
  set_part(&a, 2, 3, 2, 0, NAN);
  set_part(&r, 3, 1, 2, 0, INFINITY);
  set_part(&v, 3, 1, 2, 0, INFINITY);
  set_part(&r, 4, 2, 0, 0, 1e-3);
  for (int i = 0; i < 5; ++i) {
    on[i] = shifted_on_device(arrays[i], order == PADDED ? part_size(arrays[i]->type) : 0);
    ms[i] = matrices(arrays[i]);
    on_ms[i] = device_matrices(&on[i]);
  }
  if (shape == V_AND_TAU) {
    given.v = &ms[3];
    given.tau = &ms[4];
    on_given.v = &on_ms[3];
    on_given.tau = &on_ms[4];
  } else {
    given.r = &ms[2];
    on_given.r = &on_ms[2];
    if (shape != R_ALONE && shape != R_OF_COMPLETE) {
      given.q = &ms[1];
      on_given.q = &on_ms[1];
    }
  }
  if (shape == WITH_P) given.p = on_given.p = p;
  o.size = sizeof o;
  given.size = on_given.size = sizeof given;
  code = qrtool_verify(context, &ms[0], &given, &o, reports, 0);
  on_code = qrtool_verify(context, &on_ms[0], &on_given, &o, on_reports, 0);
  EXPECT(code == QRTOOL_NOT_ALL_GOOD && on_code == code);
  EXPECT(reports[0].status == QRTOOL_GOOD && reports[2].status == QRTOOL_NON_FINITE);
  EXPECT(reports[1].status == QRTOOL_ABOVE_BAR && reports[3].status == QRTOOL_ABOVE_BAR);
  for (int b = 0; b < count; ++b) {
    const int before = wrong_claims;
    expect_same(&on_reports[b], &reports[b]);
    if (wrong_claims > before)
      printf("  matrix %d: type %d %d, shape %d, order %d\n", b, type, factors_type, shape, order);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT(has_bytes_of(&on[i], arrays[i]));
    free_device_array(&on[i]);
    free_array(arrays[i]);
  }
  free_array(&wide);
}

int main(void) {
  qrtool_context_options of_context = {0};
  if (!open_cuda()) return 77;
  of_context.size = sizeof of_context;
  of_context.device = "cuda:0";
  if (qrtool_open(&of_context, &context) != QRTOOL_OK) {
    fprintf(stderr, "%s\n", qrtool_error());
    return 77;
  }
  for (int type = QRTOOL_FLOAT64; type <= QRTOOL_COMPLEX64; ++type)
    for (int shape = 0; shape < SHAPES; ++shape) {
      qrtool_verify_options o = {0};
      verify_both(type, type, shape, BY_ROWS, o);
      verify_both(type, type, shape, PADDED, o);
    }
  for (int shape = 0; shape < SHAPES; ++shape) {
    qrtool_verify_options o = {0};
    verify_both(QRTOOL_FLOAT64, QRTOOL_FLOAT32, shape, BY_COLUMNS, o);
    o.criteria = 1;
    verify_both(QRTOOL_FLOAT32, QRTOOL_FLOAT32, shape, BY_ROWS, o);
    o.criteria = 0;
    o.mixed = 1;
    verify_both(QRTOOL_FLOAT32, QRTOOL_FLOAT32, shape, BY_ROWS, o);
  }
  qrtool_close(context);
  return close_cuda();
}
