/* SPDX-License-Identifier: Apache-2.0
 * device_factor_test.c: qrtool_factor of arrays in the memory of a device. What it gives has the
 * bits that host arrays have in the same context, and nothing else is written. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "on_device.h"

static qrtool_context* context = NULL;
/* Of the calls on device arrays: words for the stand-in, and the bytes that the device still has.
 */
static const char* words_of_calls = NULL;
static uint64_t spare_bytes = 0;
static uint64_t launches = 0; /* of the last one */

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
  if (words_of_calls != NULL) cuda.stand_in(words_of_calls);
  if (spare_bytes > 0) {
    char words[64];
    snprintf(words, sizeof words, "memory=%llu",
             (unsigned long long)(cuda.stand_in_bytes() + spare_bytes));
    cuda.stand_in(words);
  }
  launches = cuda.stand_in_calls("cuLaunchKernel");
  b.on_code = qrtool_factor(context, &on_a, &o, &on_out);
  launches = cuda.stand_in_calls("cuLaunchKernel") - launches;
  cuda.stand_in("");
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
  EXPECT(cuda.finish() == 0);
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

static void set_all(struct array* a, int64_t b, double x) {
  for (int64_t i = 0; i < a->rows; ++i)
    for (int64_t j = 0; j < a->columns; ++j) set_part(a, b, i, j, 0, x);
}
static void scale_all(struct array* a, int64_t b, double x) {
  for (int64_t i = 0; i < a->rows; ++i)
    for (int64_t j = 0; j < a->columns; ++j)
      for (size_t p = 0; p < parts_of(a->type); ++p)
        set_part(a, b, i, j, p, part(a, b, i, j, p) * x);
}

/* Matrices that are not finite, overflow, have dependent columns, are zero, or are out of the usual
 * range, among others: of the last ones some go to the host and back. */
static struct array hard_array(int type, int64_t rows, int64_t columns, int order) {
  struct array a = random_array(type, 12, rows, columns, order);
  const double largest = part_size(type) == 8 ? 1.7e308 : 3.3e38;
  set_part(&a, 1, rows - 1, 0, 0, NAN);
  set_all(&a, 2, largest);
  set_all(&a, 3, 1);
  set_all(&a, 4, 0);
  scale_all(&a, 5, part_size(type) == 8 ? 1e-300 : 1e-30);
  scale_all(&a, 6, part_size(type) == 8 ? 1e300 : 1e30);
  set_part(&a, 7, 0, columns - 1, parts_of(type) - 1, INFINITY);
  set_all(&a, 8, -largest);
  for (int64_t i = 0; i < rows; ++i) set_part(&a, 9, i, 1, 0, part(&a, 9, i, 0, 0) * (1 + 1e-6));
  set_all(&a, 11, largest);
  return a;
}

static void hard_input(void) {
  for (int type = QRTOOL_FLOAT64; type <= QRTOOL_COMPLEX64; ++type)
    for (int mode = QRTOOL_REDUCED; mode <= QRTOOL_RAW; ++mode)
      for (int check = QRTOOL_FULL; check <= QRTOOL_NO_CHECK; check += 2) {
        qrtool_factor_options o = {0};
        struct array a = hard_array(type, 40, 24, mode % 2 == 0 ? BY_ROWS : PADDED);
        o.mode = mode;
        o.check = check;
        compare(a, o, mode % 2 == 0 ? BY_ROWS : BY_COLUMNS, 0, 1);
        free_array(&a);
      }
}

/* As many matrices at a time as there is memory for. */
static void little_memory(void) {
  for (int order = BY_ROWS; order <= BY_COLUMNS; ++order) {
    qrtool_factor_options o = {0};
    struct array a = random_array(QRTOOL_FLOAT32, 600, 64, 32, order);
    uint64_t with_all = 0;
    struct both b;
    o.mode = order == BY_ROWS ? QRTOOL_RAW : QRTOOL_REDUCED;
    compare(a, o, order, 0, 1);
    with_all = launches;
    spare_bytes = 6 << 20;
    EXPECT(qrtool_release(context) == QRTOOL_OK);
    compare(a, o, order, 0, 1);
    EXPECT(launches > with_all);
    spare_bytes = 1;
    EXPECT(qrtool_release(context) == QRTOOL_OK);
    b = factor_both(a, o, order, 0, 1);
    EXPECT(b.on_code == QRTOOL_NO_MEMORY);
    free_both(&b);
    spare_bytes = 0;
    compare(a, o, order, 0, 1);
    free_array(&a);
  }
}

static int refused_as(int code, const char* words) {
  const int is_so = code == QRTOOL_BAD_CALL && strstr(qrtool_error(), words) != NULL;
  if (!is_so) printf("  %d: %s\n", code, qrtool_error());
  return is_so;
}

static void refusals(void) {
  struct array a = random_array(QRTOOL_FLOAT64, 3, 6, 4, BY_ROWS),
               r = zeros(QRTOOL_FLOAT64, 3, 4, 4, BY_ROWS),
               q = zeros(QRTOOL_FLOAT64, 3, 6, 4, BY_ROWS);
  struct device_array on_a = on_device(&a), on_r = on_device(&r), on_q = on_device(&q);
  qrtool_matrices of_a = matrices(&a), of_on_a = device_matrices(&on_a);
  qrtool_factor_options o = {0};
  qrtool_factors out = {0};
  qrtool_report reports[3];
  void *other = NULL, *stream = NULL;
  cuda_pointer memory = 0;
  const uint64_t before = cuda.stand_in_calls("cuLaunchKernel");
  o.size = sizeof o;
  out.size = sizeof out;
  out.r = place(&r);
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out),
                    "a is device memory and r is host memory"));
  out.r = device_place(&on_r);
  EXPECT(refused_as(qrtool_factor(context, &of_a, &o, &out),
                    "r is device memory and a is host memory"));
  out.q = place(&q);
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "q is host memory"));
  out.q = device_place(&on_q);
  out.reports = (qrtool_report*)(uintptr_t)on_q.memory;
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "reports shares memory with q"));
  EXPECT(cuda.allocate(&memory, 4096) == 0);
  out.reports = (qrtool_report*)(uintptr_t)memory;
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "reports must be host memory"));
  EXPECT(cuda.free(memory) == 0);
  out.reports = reports;
  o.no_wait = 1;
  o.check = QRTOOL_NO_CHECK;
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "no_wait needs"));
  out.reports = NULL;
  o.check = QRTOOL_FULL;
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "no_wait needs"));
  o.no_wait = 2;
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "no_wait is 2"));
  o.no_wait = 0;
  /* Of another context. */
  EXPECT(cuda.create_context(&other, 0, 0) == 0);
  EXPECT(cuda.allocate(&memory, 4096) == 0);
  EXPECT(cuda.create_stream(&stream, 1) == 0);
  EXPECT(cuda.push(primary_context) == 0);
  o.stream = stream;
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "stream belongs to another"));
  o.stream = NULL;
  of_on_a.data = (void*)(uintptr_t)memory;
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "a is memory of another CUDA"));
  of_on_a.data = (void*)(uintptr_t)on_a.first;
  EXPECT(cuda.pop(&primary_context) == 0);
  EXPECT(cuda.destroy_stream(stream) == 0);
  EXPECT(cuda.free(memory) == 0);
  EXPECT(cuda.destroy_context(other) == 0);
  /* Host arrays have no stream. */
  o.stream = (void*)1;
  out.q = place(&q);
  out.r = place(&r);
  EXPECT(refused_as(qrtool_factor(context, &of_a, &o, &out), "stream is for arrays"));
  o.stream = NULL;
  o.no_wait = 1;
  o.check = QRTOOL_NO_CHECK;
  EXPECT(refused_as(qrtool_factor(context, &of_a, &o, &out), "no_wait is for arrays"));
  /* A stream that is being recorded. */
  o.no_wait = 0;
  out.q = device_place(&on_q);
  out.r = device_place(&on_r);
  EXPECT(cuda.stand_in_calls("cuLaunchKernel") == before);
  cuda.stand_in("capture");
  EXPECT(refused_as(qrtool_factor(context, &of_on_a, &o, &out), "stream is being captured"));
  EXPECT(cuda.stand_in_calls("cuLaunchKernel") == 0);
  cuda.stand_in("");
  /* Managed memory is device memory. */
  EXPECT(cuda.allocate_managed(&memory, on_a.host.bytes, 1) == 0);
  EXPECT(cuda.to_device(memory, a.memory, a.bytes) == 0);
  of_on_a.data = (void*)(uintptr_t)memory;
  EXPECT(qrtool_factor(context, &of_on_a, &o, &out) == QRTOOL_OK);
  EXPECT(cuda.free(memory) == 0);
  free_device_array(&on_a);
  free_device_array(&on_q);
  free_device_array(&on_r);
  free_array(&a);
  free_array(&q);
  free_array(&r);
}

/* A comes in a stream, and its factors leave in it; nobody waits between. */
struct user {
  qrtool_context* context;
  int is_async, calls, wrong;
  int64_t count;
  uint64_t seed;
};
static void* use_stream(void* given) {
  struct user* u = given;
  void* stream = NULL;
  const int64_t m = 20 + (int64_t)(u->seed % 3), n = 6;
  qrtool_factor_options o = {0};
  struct array a = new_array(QRTOOL_FLOAT32, u->count, m, n, BY_ROWS);
  struct array q = zeros(a.type, u->count, m, n, BY_ROWS),
               r = zeros(a.type, u->count, n, n, BY_ROWS);
  struct array expected_q = zeros(a.type, u->count, m, n, BY_ROWS),
               expected_r = zeros(a.type, u->count, n, n, BY_ROWS);
  struct device_array on_a, on_q, on_r;
  qrtool_matrices of_a = matrices(&a), of_on_a;
  qrtool_factors out = {0};
  if (cuda.push(primary_context) != 0) ++u->wrong;
  for (int64_t b = 0; b < a.count; ++b)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        set_part(&a, b, i, j, 0, sin((double)(u->seed + (uint64_t)(b * 131 + i * 17 + j * j))));
  if (cuda.create_stream(&stream, 1) != 0) ++u->wrong;
  on_a = on_device(&q); /* anything but A, until the stream brings A */
  on_q = on_device(&q);
  on_r = on_device(&r);
  of_on_a = device_matrices(&on_a);
  o.size = sizeof o;
  o.check = u->is_async ? QRTOOL_NO_CHECK : QRTOOL_FULL;
  out.size = sizeof out;
  out.q = place(&expected_q);
  out.r = place(&expected_r);
  if (qrtool_factor(u->context, &of_a, &o, &out) != QRTOOL_OK) ++u->wrong;
  o.stream = stream;
  o.no_wait = u->is_async;
  out.q = device_place(&on_q);
  out.r = device_place(&on_r);
  for (int i = 0; i < u->calls; ++i) {
    memset(q.memory, 0, q.bytes);
    if (cuda.to_device_on(on_a.memory, a.memory, a.bytes, stream) != 0) ++u->wrong;
    if (qrtool_factor(u->context, &of_on_a, &o, &out) != QRTOOL_OK) {
      printf("%s\n", qrtool_error());
      ++u->wrong;
    }
    if (cuda.to_host_on(q.memory, on_q.memory, q.bytes, stream) != 0) ++u->wrong;
    if (cuda.to_host_on(r.memory, on_r.memory, r.bytes, stream) != 0) ++u->wrong;
    if (cuda.finish_stream(stream) != 0) ++u->wrong;
    if (!have_same_entries(&q, &expected_q) || !have_same_entries(&r, &expected_r)) ++u->wrong;
  }
  free_device_array(&on_a);
  free_device_array(&on_q);
  free_device_array(&on_r);
  if (cuda.destroy_stream(stream) != 0) ++u->wrong;
  free_array(&a);
  free_array(&q);
  free_array(&r);
  free_array(&expected_q);
  free_array(&expected_r);
  if (cuda.pop(&primary_context) != 0) ++u->wrong;
  return NULL;
}
static void streams(void) {
  for (int is_async = 0; is_async < 2; ++is_async) {
    struct user one = {context, is_async, 3, 0, 30, 1};
    struct user users[3];
    pthread_t threads[3];
    use_stream(&one);
    EXPECT(one.wrong == 0);
    for (int i = 0; i < 3; ++i) {
      users[i] = one;
      users[i].calls = 20;
      users[i].seed = 100 + (uint64_t)i;
      EXPECT(pthread_create(&threads[i], NULL, use_stream, &users[i]) == 0);
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT(pthread_join(threads[i], NULL) == 0);
      EXPECT(users[i].wrong == 0);
    }
  }
}

/* The caller's allocator, and who has what of it. */
struct allocations {
  int now, all, refuses;
  size_t bytes, most;
  void* stream;
};
static void* allocate_for(void* user, size_t bytes, void* stream) {
  struct allocations* of = user;
  cuda_pointer memory = 0;
  if (of->refuses || cuda.allocate(&memory, bytes) != 0) return NULL;
  ++of->now;
  ++of->all;
  of->bytes += bytes;
  if (of->bytes > of->most) of->most = of->bytes;
  of->stream = stream;
  return (void*)(uintptr_t)memory;
}
static void free_for(void* user, void* memory, void* stream) {
  struct allocations* of = user;
  EXPECT(stream == of->stream);
  EXPECT(cuda.finish_stream(stream) == 0); /* cuMemFree does not wait for it */
  EXPECT(cuda.free((cuda_pointer)(uintptr_t)memory) == 0);
  --of->now;
}
static void allocators(void) {
  struct allocations of = {0};
  qrtool_context_options o = {0};
  qrtool_factor_options of_factor = {0};
  qrtool_context* const before = context;
  /* Work memory up to 16 MiB comes from the library; this one matrix needs more. */
  struct array a = random_array(QRTOOL_FLOAT32, 1, 600000, 8, PADDED);
  qrtool_matrices shape = matrices(&a);
  uint64_t bytes = 0;
  struct both b;
  o.size = sizeof o;
  o.device = "cuda:0";
  o.user = &of;
  o.allocate = allocate_for;
  EXPECT(refused_as(qrtool_open(&o, &context), "both"));
  o.deallocate = free_for;
  o.device = "cpu";
  EXPECT(refused_as(qrtool_open(&o, &context), "cuda:N"));
  o.device = "cuda:0";
  EXPECT(qrtool_open(&o, &context) == QRTOOL_OK);
  compare(a, of_factor, BY_ROWS, 0, 1);
  EXPECT(of.now == 0 && of.all > 0 && of.stream == NULL);
  shape.data = NULL;
  EXPECT(qrtool_workspace(context, &shape, NULL, &bytes) == QRTOOL_OK);
  EXPECT(bytes > a.bytes / 3 && bytes < (64 << 20)); /* a packed copy of A, and little more */
  of.refuses = 1;
  b = factor_both(a, of_factor, BY_ROWS, 0, 1);
  EXPECT(b.on_code == QRTOOL_NO_MEMORY && b.code == QRTOOL_OK);
  free_both(&b);
  of.refuses = 0;
  compare(a, of_factor, BY_ROWS, 0, 1);
  qrtool_close(context);
  EXPECT(of.now == 0);
  context = before;
  EXPECT(qrtool_workspace(context, &shape, NULL, &bytes) == QRTOOL_OK);
  free_array(&a);
}

/* A call of the driver that fails is an error, and the next call works. */
static void failures(void) {
  static const char* const functions[] = {
      "cuLaunchKernel",      "cuMemAllocFromPoolAsync", "cuMemcpyDtoHAsync_v2", "cuMemsetD32Async",
      "cuStreamSynchronize", "cuPointerGetAttributes",  "cuStreamIsCapturing",  "cuStreamGetCtx"};
  qrtool_factor_options o = {0};
  struct array a = hard_array(QRTOOL_FLOAT64, 30, 20, BY_ROWS);
  compare(a, o, BY_ROWS, 0, 1);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    for (int k = 1; k <= 3; ++k) {
      struct both b;
      char words[64];
      snprintf(words, sizeof words, "fail=%s:%d%s", functions[i], k, k == 3 ? "+" : "");
      words_of_calls = words;
      b = factor_both(a, o, BY_ROWS, 0, 1);
      words_of_calls = NULL;
      if (b.on_code != QRTOOL_NO_DEVICE && b.on_code != b.code)
        printf("%s %d: %d %d\n", functions[i], k, b.on_code, b.code);
      EXPECT(b.on_code == QRTOOL_NO_DEVICE || b.on_code == b.code);
      free_both(&b);
      compare(a, o, BY_ROWS, 0, 1);
    }
  free_array(&a);
}

/* The structs of DLPack. */
struct dl_tensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct dl_managed {
  struct dl_tensor tensor;
  void* context;
  void (*deleter)(struct dl_managed*);
};
struct dl_versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct dl_versioned*);
  uint64_t flags;
  struct dl_tensor tensor;
};
static void* delete_managed(void* managed) {
  ((struct dl_managed*)managed)->deleter(managed);
  return NULL;
}

/* Device memory for callers, and arrays that own it, which may outlive the context. */
static void exports(void) {
  const uint64_t bytes = cuda.stand_in_bytes();
  const int64_t shape[3] = {2, 3, 4}, strides[3] = {1, 8, 2};
  qrtool_context_options o = {0};
  qrtool_context* short_lived = NULL;
  void *memory = NULL, *managed[3] = {NULL, NULL, NULL};
  struct dl_managed* first;
  struct dl_versioned* second;
  pthread_t thread;
  pid_t child;
  int status = 0;
  o.size = sizeof o;
  o.device = "cuda:0";
  EXPECT(qrtool_open(&o, &short_lived) == QRTOOL_OK);
  EXPECT(qrtool_allocate(short_lived, 0, NULL, &memory) == QRTOOL_OK && memory != NULL);
  EXPECT(qrtool_free(short_lived, memory, NULL) == QRTOOL_OK);
  EXPECT(qrtool_free(short_lived, NULL, NULL) == QRTOOL_OK);
  for (int i = 0; i < 3; ++i) {
    EXPECT(qrtool_allocate(short_lived, 24 * 8, NULL, &memory) == QRTOOL_OK);
    EXPECT(qrtool_export(short_lived, memory, i == 1 ? QRTOOL_COMPLEX64 : QRTOOL_FLOAT64, 3, shape,
                         i == 1 ? strides : NULL, i == 1, &managed[i]) == QRTOOL_OK);
  }
  EXPECT(refused_as(qrtool_export(short_lived, memory, 9, 3, shape, NULL, 0, &memory), "9"));
  EXPECT(memory == NULL);
  EXPECT(qrtool_allocate(short_lived, (size_t)1 << 60, NULL, &memory) == QRTOOL_NO_MEMORY);
  EXPECT(memory == NULL);
  first = managed[0];
  second = managed[1];
  EXPECT(first->tensor.device_type == 2 && first->tensor.device_id == 0);
  EXPECT(first->tensor.ndim == 3 && first->tensor.byte_offset == 0);
  EXPECT(first->tensor.code == 2 && first->tensor.bits == 64 && first->tensor.lanes == 1);
  EXPECT(memcmp(first->tensor.shape, shape, sizeof shape) == 0);
  EXPECT(first->tensor.strides[0] == 12 && first->tensor.strides[1] == 4 &&
         first->tensor.strides[2] == 1);
  EXPECT(second->major == 1 && second->minor == 0 && second->flags == 0);
  EXPECT(second->tensor.code == 5 && second->tensor.bits == 64);
  EXPECT(memcmp(second->tensor.strides, strides, sizeof strides) == 0);
  EXPECT(cuda.stand_in_bytes() >= bytes + 3 * 192);
  fflush(stdout);
  child = fork();
  if (child == 0) {
    const int is_right = qrtool_free(context, memory, NULL) == QRTOOL_FORKED;
    first->deleter(first); /* does nothing to the device */
    _exit(is_right ? 0 : 1);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  qrtool_close(short_lived);
  EXPECT(pthread_create(&thread, NULL, delete_managed, first) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
  second->deleter(second);
  delete_managed(managed[2]);
  EXPECT(qrtool_release(context) == QRTOOL_OK);
  EXPECT(cuda.stand_in_bytes() <= bytes);
}

/* Statuses of matrices that nobody waits for: unchecked, one not finite, one whose R overflows. */
static void statuses_on_device(void) {
  struct array a = random_array(QRTOOL_FLOAT32, 300, 9, 5, BY_ROWS);
  float* numbers = (float*)a.memory;
  struct device_array on_a;
  qrtool_matrices of_a;
  qrtool_factor_options o = {0};
  qrtool_factors out = {0};
  cuda_pointer r = 0, statuses = 0;
  int32_t found[300];
  for (int i = 0; i < 45; ++i) numbers[7 * 45 + i] = 3e38f;
  numbers[298 * 45 + 3] = NAN;
  on_a = on_device(&a);
  of_a = device_matrices(&on_a);
  EXPECT(cuda.allocate(&r, 300 * 25 * 4) == 0 && cuda.allocate(&statuses, sizeof found) == 0);
  o.size = sizeof o;
  out.size = sizeof out;
  out.r.data = (void*)(uintptr_t)r;
  o.statuses = (int32_t*)(uintptr_t)statuses;
  o.check = QRTOOL_NO_CHECK;
  EXPECT(refused_as(qrtool_factor(context, &of_a, &o, &out), "statuses need no_wait"));
  o.no_wait = 1;
  EXPECT(qrtool_factor(context, &of_a, &o, &out) == QRTOOL_OK);
  o.mode = QRTOOL_R;
  EXPECT(qrtool_factor(context, &of_a, &o, &out) == QRTOOL_OK);
  EXPECT(cuda.finish() == 0 && cuda.to_host(found, statuses, sizeof found) == 0);
  for (int i = 0; i < 300; ++i)
    EXPECT(found[i] == (i == 7     ? QRTOOL_OVERFLOWS
                        : i == 298 ? QRTOOL_NON_FINITE
                                   : QRTOOL_UNCHECKED));
  o.pivoting = 1;
  EXPECT(qrtool_factor(context, &of_a, &o, &out) == QRTOOL_BAD_CALL);
  o.pivoting = 0;
  o.statuses = found;
  EXPECT(refused_as(qrtool_factor(context, &of_a, &o, &out), "statuses is host memory"));
  EXPECT(cuda.free(r) == 0 && cuda.free(statuses) == 0);
  free_device_array(&on_a);
  free_array(&a);
}

/* CUDA was used, but qrtool was not, before the fork. */
static void opens_in_child(const qrtool_context_options* o) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    qrtool_context* own = NULL;
    _exit(qrtool_open(o, &own) == QRTOOL_FORKED &&
                  strstr(qrtool_error(), "a child of a process that has used it") != NULL
              ? 0
              : 1);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

/* After an error that ends CUDA's context no call works, and none hangs. */
static void lost_context(void) {
  qrtool_factor_options o = {0};
  struct array a = random_array(QRTOOL_FLOAT64, 3, 8, 4, BY_ROWS);
  struct both b;
  compare(a, o, BY_ROWS, 0, 1);
  b = factor_both(a, o, BY_ROWS, 0, 1);
  cuda.stand_in("dead=1");
  o.size = sizeof o;
  for (int i = 0; i < 3; ++i) {
    qrtool_matrices on_a = device_matrices(&b.on_a);
    qrtool_factors out = {0};
    int code;
    out.size = sizeof out;
    out.r = device_place(&b.on_r);
    code = qrtool_factor(context, &on_a, &o, &out);
    EXPECT(code == QRTOOL_NO_DEVICE);
    if (code != QRTOOL_NO_DEVICE) printf("%d %s\n", code, qrtool_error());
  }
  free_array(&a);
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {{"modes", every_mode},      {"orders", every_order},
               {"shapes", every_shape},    {"pivoting", pivoting_and_condition},
               {"hard", hard_input},       {"memory", little_memory},
               {"refusals", refusals},     {"streams", streams},
               {"allocators", allocators}, {"failures", failures},
               {"exports", exports},       {"statuses", statuses_on_device},
               {"lost", lost_context}};
  qrtool_context_options o = {0};
  if (!open_cuda()) {
    printf("no CUDA\n");
    return 77;
  }
  o.size = sizeof o;
  o.device = "cuda:0";
  opens_in_child(&o);
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
