// SPDX-License-Identifier: Apache-2.0
// builtins.cl: the functions of OpenCL C that kernels call, for opencl.cpp.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define FUNCTION __attribute__((overloadable))

size_t machine_local_id(void);
size_t machine_group_id(void);
size_t machine_group_size(void);
size_t machine_groups(void);
void machine_barrier(void);

size_t FUNCTION get_local_id(uint i) { return i == 0 ? machine_local_id() : 0; }
size_t FUNCTION get_group_id(uint i) { return i == 0 ? machine_group_id() : 0; }
size_t FUNCTION get_local_size(uint i) { return i == 0 ? machine_group_size() : 1; }
size_t FUNCTION get_num_groups(uint i) { return i == 0 ? machine_groups() : 1; }
size_t FUNCTION get_global_id(uint i) {
  return i == 0 ? machine_group_id() * machine_group_size() + machine_local_id() : 0;
}
size_t FUNCTION get_global_size(uint i) {
  return i == 0 ? machine_groups() * machine_group_size() : 1;
}
void FUNCTION barrier(cl_mem_fence_flags flags) { machine_barrier(); }
void FUNCTION mem_fence(cl_mem_fence_flags flags) {}

#define OF_REALS(REAL, suffix)                                                     \
  REAL FUNCTION fma(REAL x, REAL y, REAL z) { return __builtin_fma##suffix(x, y, z); } \
  REAL FUNCTION fabs(REAL x) { return __builtin_fabs##suffix(x); }                 \
  REAL FUNCTION fmax(REAL x, REAL y) { return __builtin_fmax##suffix(x, y); }      \
  REAL FUNCTION fmin(REAL x, REAL y) { return __builtin_fmin##suffix(x, y); }      \
  REAL FUNCTION sqrt(REAL x) { return __builtin_sqrt##suffix(x); }                 \
  REAL FUNCTION rsqrt(REAL x) { return 1 / __builtin_sqrt##suffix(x); }            \
  REAL FUNCTION hypot(REAL x, REAL y) { return __builtin_hypot##suffix(x, y); }    \
  REAL FUNCTION copysign(REAL x, REAL y) { return __builtin_copysign##suffix(x, y); } \
  REAL FUNCTION ldexp(REAL x, int e) { return __builtin_ldexp##suffix(x, e); }     \
  int FUNCTION ilogb(REAL x) { return __builtin_ilogb##suffix(x); }                \
  int FUNCTION isnan(REAL x) { return __builtin_isnan(x); }                        \
  int FUNCTION isfinite(REAL x) { return __builtin_isfinite(x); }
OF_REALS(float, f)
OF_REALS(double, )
float FUNCTION native_sqrt(float x) { return __builtin_sqrtf(x); }
float FUNCTION native_rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
float FUNCTION native_recip(float x) { return 1 / x; }

#define OF_INTEGERS(INTEGER)                                             \
  INTEGER FUNCTION min(INTEGER x, INTEGER y) { return x < y ? x : y; }   \
  INTEGER FUNCTION max(INTEGER x, INTEGER y) { return x > y ? x : y; }   \
  INTEGER FUNCTION clamp(INTEGER x, INTEGER low, INTEGER high) {         \
    return x < low ? low : x > high ? high : x;                          \
  }
OF_INTEGERS(int)
OF_INTEGERS(uint)
OF_INTEGERS(long)
OF_INTEGERS(ulong)

#define OF_VECTORS(VECTOR, count)                             \
  VECTOR FUNCTION fma(VECTOR x, VECTOR y, VECTOR z) {         \
    VECTOR sum;                                               \
    for (int i = 0; i < count; ++i) sum[i] = fma(x[i], y[i], z[i]); \
    return sum;                                               \
  }
OF_VECTORS(float2, 2)
OF_VECTORS(float4, 4)
OF_VECTORS(double2, 2)
OF_VECTORS(double4, 4)
float4 FUNCTION select(float4 x, float4 y, int4 which) {
  for (int i = 0; i < 4; ++i) x[i] = which[i] < 0 ? y[i] : x[i];
  return x;
}
double4 FUNCTION select(double4 x, double4 y, long4 which) {
  for (int i = 0; i < 4; ++i) x[i] = which[i] < 0 ? y[i] : x[i];
  return x;
}

#define OF_MEMORY(VECTOR, REAL, count)                                                  \
  VECTOR FUNCTION vload##count(size_t at, const __global REAL* from) {                  \
    VECTOR x;                                                                           \
    for (int i = 0; i < count; ++i) x[i] = from[count * at + i];                        \
    return x;                                                                           \
  }                                                                                     \
  VECTOR FUNCTION vload##count(size_t at, const __local REAL* from) {                   \
    VECTOR x;                                                                           \
    for (int i = 0; i < count; ++i) x[i] = from[count * at + i];                        \
    return x;                                                                           \
  }                                                                                     \
  void FUNCTION vstore##count(VECTOR x, size_t at, __global REAL* to) {                 \
    for (int i = 0; i < count; ++i) to[count * at + i] = x[i];                          \
  }                                                                                     \
  void FUNCTION vstore##count(VECTOR x, size_t at, __local REAL* to) {                  \
    for (int i = 0; i < count; ++i) to[count * at + i] = x[i];                          \
  }
OF_MEMORY(float2, float, 2)
OF_MEMORY(float4, float, 4)
OF_MEMORY(double2, double, 2)
OF_MEMORY(double4, double, 4)

ushort machine_half(float x);
float machine_float(ushort half_bits);
#define OF_HALVES(SPACE)                                                       \
  void FUNCTION vstore_half4_rte(float4 x, size_t at, SPACE half* to) {        \
    for (int i = 0; i < 4; ++i) ((SPACE ushort*)to)[4 * at + i] = machine_half(x[i]); \
  }                                                                            \
  void FUNCTION vstore_half_rte(float x, size_t at, SPACE half* to) {          \
    ((SPACE ushort*)to)[at] = machine_half(x);                                 \
  }                                                                            \
  float4 FUNCTION vload_half4(size_t at, const SPACE half* from) {             \
    float4 x;                                                                  \
    for (int i = 0; i < 4; ++i) x[i] = machine_float(((const SPACE ushort*)from)[4 * at + i]); \
    return x;                                                                  \
  }
OF_HALVES(__local)
OF_HALVES(__global)

void machine_atomic(size_t place);
#define ATOMIC FUNCTION __attribute__((no_sanitize("thread")))
#define OF_ATOMICS(SPACE)                                                                     \
  int ATOMIC atomic_max(volatile SPACE int* to, int x) {                                      \
    machine_atomic((size_t)to);                                                                \
    const int before = *to;                                                                   \
    if (x > before) *to = x;                                                                  \
    return before;                                                                            \
  }                                                                                           \
  int ATOMIC atomic_inc(volatile SPACE int* to) {                                             \
    machine_atomic((size_t)to);                                                                \
    return (*to)++;                                                                           \
  }                                                                                           \
  int ATOMIC atomic_add(volatile SPACE int* to, int x) {                                      \
    machine_atomic((size_t)to);                                                                \
    const int before = *to;                                                                   \
    *to = before + x;                                                                         \
    return before;                                                                            \
  }                                                                                           \
  int ATOMIC atomic_or(volatile SPACE int* to, int x) {                                       \
    machine_atomic((size_t)to);                                                                \
    const int before = *to;                                                                   \
    *to = before | x;                                                                         \
    return before;                                                                            \
  }
OF_ATOMICS(__local)
OF_ATOMICS(__global)
