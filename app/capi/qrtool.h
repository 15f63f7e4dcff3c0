/* SPDX-License-Identifier: Apache-2.0
 * qrtool.h: checked QR factors and least squares of matrices in memory, for C and whoever calls C.
 *
 *   factor   A (m x n) -> Q, R with A = Q R, k = min(m, n), and the errors of every matrix
 *   solve    A (m x n), B (m x p) -> X (n x p) that minimises ||A X - B||, and an error of every x
 *   apply    Q, or R, and B -> Q'B, QB, R^-1 B or R^-H B, and an error of every column
 *   verify   A, Q, R -> the errors of factors, whoever made them
 *   generate test matrices, on which to judge a program
 *
 *     qrtool_context *context = NULL;
 *     qrtool_matrices a = {.data = numbers, .count = 1000, .rows = 64, .columns = 8};
 *     qrtool_factors out = {.size = sizeof out, .q = {.data = q}, .r = {.data = r}};
 *     if (qrtool_open(NULL, &context) || qrtool_factor(context, &a, NULL, &out))
 *       fprintf(stderr, "%s\n", qrtool_error());
 *     qrtool_close(context);
 *
 * What holds for every function:
 *
 * - Errors. The result is a code (enum qrtool_code). No function throws, prints, or ends the
 *   process, even where the system gives no memory or no thread. Where the code is neither
 *   QRTOOL_OK nor QRTOOL_NOT_ALL_GOOD, qrtool_error() says why in words.
 * - Structs begin as zeros: 0 and NULL mean "as usual" everywhere. Options and results have a
 *   member `size`, which the caller sets to the sizeof of that struct.
 * - Ownership. The caller owns all arrays and structs, and may free them after the call. Only
 *   contexts belong to the library, until qrtool_close().
 * - Threads. Contexts do not depend on each other. Calls on one context by several threads wait
 *   for each other, but those on device arrays only where they go by the host.
 * - fork(). A child uses contexts of its own: those of its parent answer QRTOOL_FORKED there. What
 *   a child opens works on one thread of the CPU where the parent had already used the library.
 * - Stability. As long as QRTOOL_ABI is the same number, functions stay with their arguments,
 *   values of enums stay, and structs grow at their ends alone; a caller that was built with an
 *   older header goes on working, because it says by `size` what it knows. QRTOOL_ABI is also the
 *   number in the name of the shared library (libqrtool.so.1).
 *
 * Sizes and strides count elements; a complex number is one element. Errors and bars are those of
 * `qrtool factor` and `qrtool solve`; qrtool(7) defines them.
 */
#ifndef QRTOOL_H
#define QRTOOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QRTOOL_ABI 1

#if defined(__GNUC__)
#define QRTOOL_API __attribute__((visibility("default")))
#else
#define QRTOOL_API
#endif

/* The codes have the numbers of the program's exit codes. */
enum qrtool_code {
  QRTOOL_OK = 0,
  QRTOOL_NOT_ALL_GOOD = 1, /* done, but the status of a matrix, or of a solution, is not ok */
  QRTOOL_BAD_CALL = 2,     /* an argument is wrong, or a combination of options */
  QRTOOL_BAD_INPUT = 3,    /* the numbers in an array cannot be what they should be */
  QRTOOL_NO_DEVICE = 4,    /* the device is not there, or failed */
  QRTOOL_NO_MEMORY = 6,    /* the memory, or the limit of the context, does not suffice */
  QRTOOL_INTERNAL = 7,     /* a fault of the library */
  QRTOOL_STOPPED = 8,      /* the caller's keep_going said so */
  QRTOOL_FORKED = 9        /* the context, or CUDA, belongs to the process that forked this one */
};

enum qrtool_type {
  QRTOOL_FLOAT64 = 0,
  QRTOOL_FLOAT32 = 1,
  QRTOOL_COMPLEX128 = 2, /* pairs of float64: real part, imaginary part */
  QRTOOL_COMPLEX64 = 3   /* pairs of float32 */
};

/* k = min(m, n) */
enum qrtool_mode {
  QRTOOL_REDUCED = 0,  /* Q m x k, R k x n */
  QRTOOL_COMPLETE = 1, /* Q m x m, R m x n */
  QRTOOL_R = 2,        /* R k x n alone */
  QRTOOL_RAW = 3 /* V (m x n): R above the diagonal, reflectors below it; tau (k). LAPACK geqrf */
};

enum qrtool_sign {
  QRTOOL_USUAL_SIGN = 0, /* lapack in mode raw, else positive */
  QRTOOL_POSITIVE = 1,   /* R_kk >= 0 */
  QRTOOL_LAPACK = 2      /* those that LAPACK's Householder reflectors leave */
};

enum qrtool_check {
  QRTOOL_FULL = 0,  /* errors are measured */
  QRTOOL_PROBE = 1, /* estimated with random vectors, measured where the estimate leaves a doubt */
  QRTOOL_NO_CHECK = 2
};

enum qrtool_arithmetic {
  QRTOOL_ANY = 0,    /* whatever reaches the accuracy of the type */
  QRTOOL_STRICT = 1, /* operations of the type alone */
  QRTOOL_MIXED = 2   /* products in half precision; float32 alone; the bars have u = 2^-10 */
};

enum qrtool_status {
  QRTOOL_GOOD = 0,
  QRTOOL_ABOVE_BAR = 1,
  QRTOOL_NON_FINITE = 2, /* A, or b, holds NaN or Inf; the factors, or x, are NaN */
  QRTOOL_OVERFLOWS = 3,  /* R, or x, is larger than its type can hold */
  QRTOOL_UNCHECKED = 4,
  QRTOOL_TOO_FEW_ROWS = 5 /* the rows that count do not determine x, which is NaN */
};

/* Matrices that are read: `count` of rows x columns, where entry (i, j) of matrix b is
 * data[b * matrix_stride + i * row_stride + j * column_stride]. Strides may be negative. Where
 * row_stride and column_stride are both 0, the matrices are packed by rows, and all strides follow
 * from the shape; elsewhere a matrix_stride of 0 gives each place of the batch the same matrix.
 * data must be aligned as its type asks; it may be NULL where there are no entries. */
typedef struct qrtool_matrices {
  const void* data;
  int32_t type; /* enum qrtool_type */
  int32_t reserved;
  int64_t count, rows, columns;
  int64_t row_stride, column_stride, matrix_stride;
} qrtool_matrices;

/* A place for matrices that are written, with strides as in qrtool_matrices; shape and type follow
 * from the call. Entries must not share memory with each other, with another place, with reports,
 * or with what is read: such a call does nothing, and its code is QRTOOL_BAD_CALL. Arrays that lie
 * between each other without a common byte, such as columns of one larger array, are allowed. NULL:
 * not wanted. Nothing outside of the entries is written. */
typedef struct qrtool_place {
  void* data;
  int64_t row_stride, column_stride, matrix_stride;
} qrtool_place;

/* ---- Contexts ---- */

/* A device, its memory and its compiled kernels, and workspaces that stay from call to call. */
typedef struct qrtool_context qrtool_context;

typedef struct qrtool_context_options {
  size_t size;
  /* "auto" or NULL: for each call the CPU, or the first GPU where that is expected to be faster;
   * "cpu"; an OpenCL device by its index or a part of its name; or "cuda:N", the NVIDIA GPU with
   * this number in CUDA, by its CUDA driver. Copied. */
  const char* device;
  /* Bytes of memory for workspaces and copies, below 2^63. 0: half of what is free when the context
   * is opened. A device takes 48 MiB more, through which it copies arrays. */
  uint64_t memory_bytes;
  /* 0: all cores that the process may use. Results do not depend on it. */
  int32_t threads;
  int32_t reserved;
  /* Called by the calling thread between parts of a long call, with `user`; the call ends with
   * QRTOOL_STOPPED where it returns 0, and what the call was to write is then undefined. NULL:
   * never. */
  int (*keep_going)(void* user);
  void* user;
  /* Where the work memory of calls on device arrays comes from: `bytes` of device memory that may
   * be used in the order of `stream` (see "Device arrays"); allocate gives NULL where there is
   * none. Called by the calling thread with `user`. Both NULL: from memory of the library. */
  void* (*allocate)(void* user, size_t bytes, void* stream);
  void (*deallocate)(void* user, void* memory, void* stream);
} qrtool_context_options;

/* *context := a new context; NULL where that fails. options: NULL for the usual ones. */
QRTOOL_API int qrtool_open(const qrtool_context_options* options, qrtool_context** context);
/* Frees a context, which no call may be using. NULL is allowed. */
QRTOOL_API void qrtool_close(qrtool_context* context);

/* What the last failed call of this thread has to say, in one line; "" if none failed. Valid until
 * the next call of this thread. */
QRTOOL_API const char* qrtool_error(void);

/* How the last factor or solve of a context was done. The texts belong to the thread that asks, and
 * stay until it asks again or ends. */
typedef struct qrtool_run {
  size_t size;
  const char* backend;    /* "cpu" or "opencl" */
  const char* device;     /* the processor's or the device's name */
  const char* variant;    /* the algorithm, such as "cpu/batched" */
  const char* arithmetic; /* that ran; "" after qrtool_solve */
  const char* reason;     /* why this backend */
  int32_t threads;
  int32_t reserved;
} qrtool_run;
QRTOOL_API int qrtool_last_run(qrtool_context* context, qrtool_run* run);

/* QRTOOL_ABI and the version, such as "0.2.0", of the library that is loaded. */
QRTOOL_API int qrtool_abi(void);
QRTOOL_API const char* qrtool_version(void);
/* The word of a status, such as "above_bar"; "" for other numbers. */
QRTOOL_API const char* qrtool_status_name(int status);

/* ---- Factors ---- */

/* What is found about a matrix. With Frobenius norms and sums in float64:
 *   residual ||A - QR|| / ||A||, orthogonality ||I - Q'Q||, lower ||R below its diagonal|| / ||A||.
 * Without Q: residual ||A'A - R'R|| / ||A||^2, orthogonality NaN. NaN: not measured. */
typedef struct qrtool_report {
  double residual, orthogonality, lower;
  double residual_bar, orthogonality_bar, lower_bar; /* a matrix is good where its errors are <= */
  double diagonal_ratio;                             /* min |r_ii| / max |r_ii| */
  double condition;                                  /* an estimate; NaN: not asked for */
  int32_t status;                                    /* enum qrtool_status */
  int32_t rank;                                      /* -1: not asked for */
  int32_t tries; /* 2: reflectors made it after another way failed */
  int32_t scale; /* max |a_ij| lies in [2^(scale-1), 2^scale) */
} qrtool_report;

typedef struct qrtool_factor_options {
  size_t size;
  int32_t mode, sign, check, arithmetic; /* the enums above */
  int32_t pivoting;                      /* 1: A[:, p] = Q R, |r_ii| falling */
  int32_t condition;                     /* 1: reports get rank and condition */
  /* For device arrays alone (see "Device arrays"). */
  void* stream;
  int32_t no_wait; /* 1: the call returns when its work is in the stream */
  int32_t reserved;
  int32_t* statuses; /* with no_wait: device memory for the enum qrtool_status of each matrix; NULL:
                        not wanted */
} qrtool_factor_options;

/* The places for factors, of A's type, and for what is found. A place that the mode does not give
 * is left alone; one that it gives may be NULL, but R (V in mode raw) may not. */
typedef struct qrtool_factors {
  size_t size;
  qrtool_place q, r, v;
  qrtool_place tau; /* 1 x k for each matrix */
  int64_t* p;       /* count x n, packed: column p[j] of A is column j of Q R; with pivoting */
  qrtool_report* reports; /* count of them, or NULL */
  size_t report_size;     /* the sizeof of one; 0: that of this header */
} qrtool_factors;

/* Factors the matrices `a`, and checks every one. A matrix that a fast way leaves above its bar is
 * factored again by reflectors. One that is not finite gets NaN factors, and changes no other
 * matrix. options: NULL for the usual ones. */
QRTOOL_API int qrtool_factor(qrtool_context* context, const qrtool_matrices* a,
                             const qrtool_factor_options* options, const qrtool_factors* out);

/* ---- Verifying ---- */

typedef struct qrtool_verify_options {
  size_t size;
  int32_t check;    /* QRTOOL_FULL or QRTOOL_PROBE */
  int32_t criteria; /* 0: the bars of factor; 1: m 2^-23 for each error */
  int32_t mixed;    /* 1: the factors are those of QRTOOL_MIXED */
  int32_t reserved;
  void* stream; /* for device arrays alone (see "Device arrays") */
} qrtool_verify_options;

/* Factors that are given: q (m x k or m x m) and r (k x n or m x n); r alone; or v (m x n) and tau
 * (1 x k). Each has as many matrices as A, and is complex where A is; otherwise types may differ,
 * and the coarser one decides on the bars. */
typedef struct qrtool_given_factors {
  size_t size;
  const qrtool_matrices *q, *r, *v, *tau; /* NULL: not given */
  const int64_t* p;                       /* as in qrtool_factors; NULL: columns are in A's order */
} qrtool_given_factors;

/* Measures the errors in float64. reports: one for each matrix, or NULL; report_size: as in
 * qrtool_factors. */
QRTOOL_API int qrtool_verify(qrtool_context* context, const qrtool_matrices* a,
                             const qrtool_given_factors* factors,
                             const qrtool_verify_options* options, qrtool_report* reports,
                             size_t report_size);

/* ---- Least squares ---- */

/* What is found about a right side b and its x. NaN: not measured. */
typedef struct qrtool_solution {
  double residual_norm;      /* ||b - A x||, weighted where rows have weights */
  double backward_error;     /* of x as it is stored */
  double least_norm_error;   /* where x of least norm is promised */
  double bar;                /* for both errors */
  double degrees_of_freedom; /* rows that count, less the rank */
  double condition;          /* estimates of the condition of A, */
  double scaled_condition;   /* and of A with columns of norm 1 */
  int32_t status;            /* enum qrtool_status */
  int32_t rank;              /* of A; -1: A is not finite */
  int32_t tries;
  int32_t reserved;
} qrtool_solution;

typedef struct qrtool_solve_options {
  size_t size;
  double rank_tolerance; /* of A's columns scaled to norm 1; 0: u max(16, 2n) */
  double ridge;          /* min ||A x - b||^2 + ridge ||x||^2 */
  int32_t intercept;     /* 1: column 0 of A is all ones, which the caller has put there, and the
                            ridge leaves its x alone; other numbers than 1 and NaN are refused */
  int32_t basic;         /* 1: zeros in place of the solution of least norm */
  int32_t skip_missing;  /* 1: a row with NaN in A or b is left out */
  int32_t least_norm;    /* 1: x of least norm where too few rows count; 0: NaN and a status */
  void* stream;          /* for device arrays alone (see "Device arrays") */
} qrtool_solve_options;

/* The places for x (n x p for each place of the batch), its standard errors, and what is found. */
typedef struct qrtool_solutions {
  size_t size;
  qrtool_place x;
  qrtool_place errors;        /* standard errors, n x p; only where m > n, and without a ridge */
  qrtool_solution* solutions; /* p for each place of the batch, or NULL */
  size_t solution_size;       /* the sizeof of one; 0: that of this header */
} qrtool_solutions;

/* Minimises ||A X - B|| for A (m x n) and B (m x p), matrices of one type, and checks every x. One
 * A serves every B and one B every A where its count is 1. Where the rank is less than n, x has
 * least norm. weights: of the squared residuals, m x 1 or m x p, real and of A's precision; NULL:
 * all
 * 1. Standard errors are real, too.
 * options: NULL for the usual ones. */
QRTOOL_API int qrtool_solve(qrtool_context* context, const qrtool_matrices* a,
                            const qrtool_matrices* b, const qrtool_matrices* weights,
                            const qrtool_solve_options* options, const qrtool_solutions* out);

/* ---- Products with factors ---- */

/* ' and H are the conjugate transpose. */
enum qrtool_product {
  QRTOOL_QT = 0,   /* Q'B: k x p of m x p; m x p of v and tau, as LAPACK's ormqr */
  QRTOOL_Q = 1,    /* Q B: m x p of k x p, or of m x p */
  QRTOOL_RINV = 2, /* R^-1 B, with p P R^-1 B: n x p of n x p, for m >= n */
  QRTOOL_RINVT = 3 /* R^-H B, with p R^-H P'B */
};

typedef struct qrtool_apply_options {
  size_t size;
  int32_t product; /* enum qrtool_product */
  int32_t reserved;
} qrtool_apply_options;

/* X := a product of B with factors of its type: q, or r and perhaps p, or v and tau. One of them
 * serves every B, and one B every factor, where its count is 1. Each x is checked by the inverse
 * product: backward_error, bar, status and tries are found of it; errors is not used.
 * QRTOOL_OVERFLOWS is also the status where R has a zero on its diagonal, and x is NaN. All arrays
 * are in host memory. options: NULL for Q'B. */
QRTOOL_API int qrtool_apply(qrtool_context* context, const qrtool_given_factors* factors,
                            const qrtool_matrices* b, const qrtool_apply_options* options,
                            const qrtool_solutions* out);

/* ---- Test matrices ---- */

typedef struct qrtool_generate_options {
  size_t size;
  double cond; /* of the kinds that have such a number; 0: 1e6 */
  uint64_t seed;
  void* stream; /* for device arrays alone (see "Device arrays") */
} qrtool_generate_options;

/* Fills `out` with the matrices that `qrtool generate` writes, which are hard for many programs.
 * kind: a name of qrtool_kind_name(), or several joined by "+", which the matrices have in turn.
 * shape: how many, their rows and columns, and their type; its data and strides are not read. */
QRTOOL_API int qrtool_generate(qrtool_context* context, const char* kind,
                               const qrtool_matrices* shape, const qrtool_generate_options* options,
                               const qrtool_place* out);

/* The names of the kinds, from 0 on, such as "contest"; "" for other numbers. */
QRTOOL_API const char* qrtool_kind_name(int number);

/* ---- Device arrays ----
 *
 * In a context of the device "cuda:N" all matrices and places of a call, weights and standard
 * errors too, may be device memory of that GPU (of cuMemAlloc and its kind, of a pool, or managed)
 * in place of host memory. Which of both they are is found out by their addresses; a mixture, and
 * memory of another device or context, is QRTOOL_BAD_CALL. Arrays without entries count as
 * neither. Reports, solutions and p are host memory always.
 *
 * - stream is a CUstream or cudaStream_t of that GPU, in whose order the call reads and writes
 *   arrays; NULL, and 1 as a pointer: the legacy default stream; 2: the default stream of the
 *   thread. It may not be given with host arrays. A stream that is being captured is
 *   QRTOOL_BAD_CALL, before anything is in it.
 * - When a call returns, its work is done, except with no_wait: then it is in the stream, the
 *   result says nothing about the numbers, and other streams wait as for any kernel. no_wait needs
 *   QRTOOL_NO_CHECK and no reports; statuses are then QRTOOL_UNCHECKED, QRTOOL_NON_FINITE or
 *   QRTOOL_OVERFLOWS. A call waits inside for the routes of all matrices if the host launches the
 *   kernels for refused ones. These find them where `gram` works, to 256 rows, and for real ones of
 *   65 to 160 columns, once a refusal, or `qrtool devices --build`, has built these kernels.
 * - Matrices that are packed by rows and aligned to 16 bytes are used where they are; others are
 *   copied on the device. Work memory comes from `allocate` of the context; where it is at most
 *   16 MiB, from a pool that the library keeps until qrtool_release(); it is free again in the
 *   order of the stream.
 * - What the device does not do goes by the host: pivoting, condition, a second try of a matrix
 *   above its bar, and much of qrtool_solve. The arrays are copied there and back, with host memory
 *   beside memory_bytes, and the reason of qrtool_last_run() says so.
 * - Without a check, what is not finite or overflows is found only for reports: the result is
 *   QRTOOL_OK where there are none.
 * - Threads that share a context wait for each other only where work goes by the host.
 * - After an error that ends the device's work in a process, such as an access to memory of nobody,
 *   every call is QRTOOL_NO_DEVICE. */

/* *bytes := the work memory that qrtool_factor takes for such matrices, whose data may be NULL,
 * with places that are packed; 0 where they go by the host. What a fast way refuses takes more, and
 * where there is less, the call works in parts. */
QRTOOL_API int qrtool_workspace(qrtool_context* context, const qrtool_matrices* a,
                                const qrtool_factor_options* options, uint64_t* bytes);

/* Gives back the memory that the context and its device keep from call to call. */
QRTOOL_API int qrtool_release(qrtool_context* context);

/* *memory := `bytes` of device memory, for use in the order of `stream`; qrtool_free gives it back
 * in the order of a stream. */
QRTOOL_API int qrtool_allocate(qrtool_context* context, size_t bytes, void* stream, void** memory);
QRTOOL_API int qrtool_free(qrtool_context* context, void* memory, void* stream);

/* *managed := a DLManagedTensor of DLPack, or where `versioned` is 1 a DLManagedTensorVersioned of
 * version 1.0, that owns `memory`, which qrtool_allocate has given. Its deleter may be called by
 * any thread, also after the context was closed; it waits for all work of the device, because who
 * has taken the array may use it on streams of his own, and frees the memory. type: enum
 * qrtool_type. strides: in elements; NULL: packed by rows. */
QRTOOL_API int qrtool_export(qrtool_context* context, void* memory, int32_t type,
                             int32_t dimensions, const int64_t* shape, const int64_t* strides,
                             int32_t versioned, void** managed);

#ifdef __cplusplus
}
#endif
#endif
