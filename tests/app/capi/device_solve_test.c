/* SPDX-License-Identifier: Apache-2.0
 * device_solve_test.c: qrtool_solve of arrays in the memory of a device. Many systems have the bits
 * that they have as host arrays in the same context. */
#include "on_device.h"

static qrtool_context* context = NULL;

struct call {
  int type, order;
  int64_t count_a, count_b, m, n, p;
  int64_t count_w, columns_w; /* 0: no weights */
  int wants_errors, is_hard, has_gaps;
  qrtool_solve_options o;
};

static int real_type(int type) {
  return type == QRTOOL_FLOAT64 || type == QRTOOL_COMPLEX128 ? QRTOOL_FLOAT64 : QRTOOL_FLOAT32;
}

static int is_near(double one, double other, double relative) {
  if (isnan(one) || isnan(other)) return isnan(one) && isnan(other);
  return fabs(one - other) <= relative * (1 + fabs(other));
}

static void expect_near(const struct device_array* on, const struct array* expected) {
  struct array found = copy_of(expected, BY_ROWS), there = on->host;
  const double relative = part_size(expected->type) == 8 ? 1e-9 : 1e-3;
  there.memory = malloc(there.bytes);
  there.first = there.memory + (on->host.first - on->host.memory);
  EXPECT(cuda.finish() == 0);
  EXPECT(cuda.to_host(there.memory, on->first - (cuda_pointer)(on->host.first - on->host.memory),
                      there.bytes) == 0);
  for (int64_t b = 0; b < there.count; ++b)
    for (int64_t i = 0; i < there.rows; ++i)
      for (int64_t j = 0; j < there.columns; ++j)
        EXPECT(is_near(part(&there, b, i, j, 0), part(expected, b, i, j, 0), relative));
  free(there.memory);
  free_array(&found);
}

static int is_done_there(const struct call* c) {
  return c->p <= c->n && c->type <= QRTOOL_FLOAT32 && c->count_w == 0 && !c->o.skip_missing &&
         c->count_a >= c->count_b;
}

static void solve_both(struct call c) {
  const int64_t count = c.count_a > c.count_b ? c.count_a : c.count_b;
  struct array a = new_array(c.type, c.count_a, c.m, c.n, c.order),
               b = new_array(c.type, c.count_b, c.m, c.p, c.order),
               w = new_array(real_type(c.type), c.count_w, c.m, c.columns_w, c.order),
               x = new_array(c.type, count, c.n, c.p, c.order),
               e = new_array(real_type(c.type), count, c.n, c.p, c.order);
  struct array* arrays[5] = {&a, &b, &w, &x, &e};
  struct device_array on[5];
  qrtool_matrices ms[3], on_ms[3];
  qrtool_solutions out = {0}, on_out = {0};
  const size_t sides = (size_t)(count * c.p);
  qrtool_solution *solutions = calloc(sides + 1, sizeof *solutions),
                  *on_solutions = calloc(sides + 1, sizeof *solutions);
  const int before = wrong_claims;
  qrtool_run run = {0};
  int code, on_code;
  run.size = sizeof run;
  fill(&a);
  fill(&b);
  fill(&w);
  for (int64_t i = 0; i < c.count_w; ++i)
    for (int64_t j = 0; j < c.m; ++j)
      for (int64_t k = 0; k < c.columns_w; ++k)
        set_part(&w, i, j, k, 0, fabs(part(&w, i, j, k, 0)));
  if (c.o.intercept)
    for (int64_t i = 0; i < c.count_a; ++i)
      for (int64_t j = 0; j < c.m; ++j) {
        set_part(&a, i, j, 0, 0, 1);
        if (parts_of(c.type) == 2) set_part(&a, i, j, 0, 1, 0);
      }
  if (c.is_hard) {
    set_part(&a, 1, 2, 1, 0, NAN);
    for (int64_t j = 0; j < c.m; ++j) /* two equal columns */
      for (size_t k = 0; k < parts_of(c.type); ++k) set_part(&a, 2, j, 1, k, part(&a, 2, j, 0, k));
    set_part(&b, 4, 0, 0, 0, INFINITY);
  }
  if (c.has_gaps) set_part(&b, 0, 1, 0, 0, NAN);
  for (int i = 0; i < 5; ++i) {
    on[i] = on_device(arrays[i]);
    if (i < 3) ms[i] = matrices(arrays[i]);
    if (i < 3) on_ms[i] = device_matrices(&on[i]);
  }
  out.size = on_out.size = sizeof out;
  out.x = place(&x);
  on_out.x = device_place(&on[3]);
  if (c.wants_errors) {
    out.errors = place(&e);
    on_out.errors = device_place(&on[4]);
  }
  out.solutions = solutions;
  on_out.solutions = on_solutions;
  c.o.size = sizeof c.o;
  on_code =
      qrtool_solve(context, &on_ms[0], &on_ms[1], c.count_w > 0 ? &on_ms[2] : NULL, &c.o, &on_out);
  if (on_code > QRTOOL_NOT_ALL_GOOD) printf("%s\n", qrtool_error());
  EXPECT(qrtool_last_run(context, &run) == QRTOOL_OK);
  if (sides > 0 && c.n > 0 && !c.is_hard)
    EXPECT((strcmp(run.reason, "the arrays are there") == 0) == is_done_there(&c));
  if (c.type >= QRTOOL_COMPLEX128) { /* which host arrays need a context of the CPU for */
    qrtool_context* of_cpu = NULL;
    qrtool_context_options options = {0};
    options.size = sizeof options;
    options.device = "cpu";
    EXPECT(qrtool_open(&options, &of_cpu) == QRTOOL_OK);
    code = qrtool_solve(of_cpu, &ms[0], &ms[1], c.count_w > 0 ? &ms[2] : NULL, &c.o, &out);
    qrtool_close(of_cpu);
  } else {
    code = qrtool_solve(context, &ms[0], &ms[1], c.count_w > 0 ? &ms[2] : NULL, &c.o, &out);
  }
  EXPECT(code <= QRTOOL_NOT_ALL_GOOD && on_code == code);
  for (int i = 0; i < 3; ++i) EXPECT(has_bytes_of(&on[i], arrays[i]));
  if (count > 1) {
    EXPECT(has_bytes_of(&on[3], &x));
    EXPECT(has_bytes_of(&on[4], &e));
    for (size_t i = 0; i < sides; ++i) {
      EXPECT(memcmp(&solutions[i], &on_solutions[i], sizeof *solutions) == 0);
      if (memcmp(&solutions[i], &on_solutions[i], sizeof *solutions) != 0)
        printf("  %d: rank %d %d status %d %d tries %d %d norm %g %g error %g %g condition %g %g\n",
               (int)i, solutions[i].rank, on_solutions[i].rank, solutions[i].status,
               on_solutions[i].status, solutions[i].tries, on_solutions[i].tries,
               solutions[i].residual_norm, on_solutions[i].residual_norm,
               solutions[i].backward_error, on_solutions[i].backward_error, solutions[i].condition,
               on_solutions[i].condition);
    }
  } else {
    expect_near(&on[3], &x);
    if (c.wants_errors) expect_near(&on[4], &e);
    for (size_t i = 0; i < sides; ++i) {
      EXPECT(solutions[i].status == on_solutions[i].status);
      EXPECT(solutions[i].rank == on_solutions[i].rank);
      EXPECT(is_near(on_solutions[i].residual_norm, solutions[i].residual_norm, 1e-4));
      EXPECT(on_solutions[i].backward_error <= on_solutions[i].bar);
    }
  }
  if (wrong_claims > before) {
    printf("  type %d, order %d, %d and %d of %dx%d, p %d, weights %dx%d, ridge %g, hard %d\n",
           c.type, c.order, (int)c.count_a, (int)c.count_b, (int)c.m, (int)c.n, (int)c.p,
           (int)c.count_w, (int)c.columns_w, c.o.ridge, c.is_hard);
    EXPECT(qrtool_last_run(context, &run) == QRTOOL_OK);
    printf("  %s: %s\n", run.variant, run.reason);
  }
  for (int i = 0; i < 5; ++i) {
    free_device_array(&on[i]);
    free_array(arrays[i]);
  }
  free(solutions);
  free(on_solutions);
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
  for (int type = QRTOOL_FLOAT64; type <= QRTOOL_COMPLEX64; ++type) {
    const struct call usual = {type, BY_ROWS, 7, 7, 12, 5, 1, 0, 0, 0, 0, 0, {0}};
    struct call c = usual;
    solve_both(c);
    c.is_hard = 1;
    solve_both(c);
    c.order = BY_COLUMNS;
    solve_both(c);
    c.order = INTERLEAVED;
    c.p = 3;
    solve_both(c);
    c = usual;
    c.wants_errors = 1;
    solve_both(c);
    c.o.intercept = 1;
    solve_both(c);
    c = usual;
    c.o.ridge = 0.5;
    solve_both(c);
    c.order = PADDED;
    c.p = 2;
    c.o.intercept = 1;
    solve_both(c);
    c = usual;
    c.n = 20; /* wide */
    c.p = 2;
    solve_both(c);
    c.o.ridge = 0.25;
    solve_both(c);
    c = usual;
    c.count_b = 1; /* one b for all */
    solve_both(c);
    c.count_b = 7;
    c.count_a = 1; /* one A for all */
    solve_both(c);
    c.p = 9;
    solve_both(c);
    c.count_b = 1; /* one system */
    solve_both(c);
    c.p = 1;
    c.wants_errors = 1;
    solve_both(c);
    c.m = 3000;
    solve_both(c);
    c = usual;
    c.count_w = 7;
    c.columns_w = 1;
    solve_both(c);
    c.count_w = 1;
    solve_both(c);
    c = usual;
    c.o.skip_missing = c.has_gaps = 1;
    solve_both(c);
    c.p = 0;
    c.has_gaps = 0;
    solve_both(c);
    c = usual;
    c.n = 0;
    solve_both(c);
  }
  qrtool_close(context);
  return close_cuda();
}
