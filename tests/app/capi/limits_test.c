/* SPDX-License-Identifier: Apache-2.0
 * limits_test.c: where the system gives no memory or no thread, calls say so or use what there is,
 * and the process goes on. fail_nth.c, loaded before, makes malloc and pthread_create fail. */
#include <pthread.h>

#include "expect.h"

int setenv(const char* name, const char* value, int replace);

static void let_fail(const char* call) { setenv("QRTOOL_FAIL_CALL", call, 1); }

enum { M = 900, N = 300, SIDES = 40 };
static double a[M * N], q[M * N], r[N * N], b[M * SIDES], x[N * SIDES];
static const qrtool_matrices of_a = {a, QRTOOL_FLOAT64, 0, 1, M, N, 0, 0, 0};
static const qrtool_matrices of_b = {b, QRTOOL_FLOAT64, 0, 1, M, SIDES, 0, 0, 0};
static const qrtool_matrices batch = {a, QRTOOL_FLOAT64, 0, M, 20, 15, 0, 0, 0};
static qrtool_context* context = NULL;

static int factor(void) {
  const qrtool_factors out = {sizeof out,      {q, 0, 0, 0}, {r, 0, 0, 0}, {NULL, 0, 0, 0},
                              {NULL, 0, 0, 0}, NULL,         NULL,         0};
  return qrtool_factor(context, &of_a, NULL, &out);
}
static int factor_batch(void) {
  static double rs[M * 15 * 15];
  const qrtool_factors out = {
      sizeof out, {NULL, 0, 0, 0}, {rs, 0, 0, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, NULL, NULL, 0};
  return qrtool_factor(context, &batch, NULL, &out);
}
static int solve(void) {
  const qrtool_solutions out = {sizeof out, {x, 0, 0, 0}, {NULL, 0, 0, 0}, NULL, 0};
  return qrtool_solve(context, &of_a, &of_b, NULL, NULL, &out);
}
static int verify(void) {
  const qrtool_matrices of_q = {q, QRTOOL_FLOAT64, 0, 1, M, N, 0, 0, 0};
  const qrtool_matrices of_r = {r, QRTOOL_FLOAT64, 0, 1, N, N, 0, 0, 0};
  qrtool_given_factors given = {0};
  given.size = sizeof given;
  given.q = &of_q;
  given.r = &of_r;
  return qrtool_verify(context, &of_a, &given, NULL, NULL, 0);
}
static int generate(void) { /* by columns, which needs memory of each thread */
  const qrtool_place out = {q, 1, M, 0};
  return qrtool_generate(context, "cond", &of_a, NULL, &out);
}
static int open_another(void) {
  qrtool_context* other = NULL;
  const int code = qrtool_open(NULL, &other);
  qrtool_close(other);
  return code;
}
static int (*const calls[])(void) = {factor, factor_batch, solve, verify, generate, open_another};
enum { CALLS = sizeof calls / sizeof *calls };

static void* without_memory(void* unused) {
  let_fail("malloc");
  for (int i = 0; i < CALLS; ++i) {
    const int code = calls[i]();
    if (code != QRTOOL_OK && code != QRTOOL_NO_MEMORY) ++wrong_claims;
    if (code != QRTOOL_OK && qrtool_error()[0] == '\0') ++wrong_claims;
  }
  if (qrtool_factor(context, NULL, NULL, NULL) == QRTOOL_OK) ++wrong_claims;
  let_fail("none");
  return unused;
}

static void open_on(int threads) {
  qrtool_context_options options = {0};
  options.size = sizeof options;
  options.device = "cpu";
  options.threads = threads;
  EXPECT(qrtool_open(&options, &context) == QRTOOL_OK);
}

int main(void) {
  for (int i = 0; i < M * N; ++i) a[i] = chance_number();
  for (int i = 0; i < M * SIDES; ++i) b[i] = chance_number();
  setenv("QRTOOL_FAIL_NTH", "1", 1);
  setenv("QRTOOL_FAIL_STICKY", "1", 1);
  setenv("QRTOOL_FAIL_ERRNO", "11", 1); /* EAGAIN */
  setenv("QRTOOL_FAIL_LOG", "/dev/null", 1);
  let_fail("pthread_create");
  open_on(4);
  if (context == NULL) return 1;
  double of_one[N * N];
  for (int i = 0; i < CALLS; ++i) EXPECT(calls[i]() == QRTOOL_OK);
  memcpy(of_one, r, sizeof r);
  let_fail("none");
  for (int i = 0; i < CALLS; ++i) EXPECT(calls[i]() == QRTOOL_OK);
  EXPECT(memcmp(of_one, r, sizeof r) == 0);
  for (int threads = 4; threads >= 1;
       threads -= 3) { /* a thread that has not called yet, and this */
    pthread_t fresh;
    qrtool_close(context);
    open_on(threads);
    EXPECT(pthread_create(&fresh, NULL, without_memory, NULL) == 0);
    pthread_join(fresh, NULL);
    without_memory(NULL);
    EXPECT(wrong_claims == 0);
    EXPECT(factor() == QRTOOL_OK);
  }
  qrtool_close(context);
  if (wrong_claims > 0) return 1;
  puts("all claims hold");
  return 0;
}
