// SPDX-License-Identifier: Apache-2.0
// pairs.cl: what comes before the normal equations of many right sides of one A, each with weights
// or gaps of its own. The Gram matrices of all of them are one product:
//
//   A'W_s A = G_s,  (G_s)_jk = sum over i of w_si (a_ij a_ik)       G = W P
//   A'W_s b_s = y_s                                                 Y = (W b) A
//
//             pairs jk, k <= j                 right sides s                  pairs jk
//           +------------------+             +--------------+             +------------------+
//   rows i  |  a_ij a_ik = P   |     rows i  |     w_si     |     sides s |       G_s        |
//           +------------------+             +--------------+             +------------------+
//
//   pairs_of_rows     P, and A in float64; a row with a gap, where gaps are skipped,     row of A
//                     becomes zeros, in A too
//   weigh_sides       w_s := w_s 4^-e, with the largest weight in 1 .. 4; rows           right side
//                     that are left out get the weight 0, and zero in b
//   turn_sides        W and W b in float64, a row of A in each row             square of 32 x 32
//   gemm.cl           G and Y
//
// A is m x n with n <= 128; b and the weights have m neighbours for each right side. x does not
// change with the scale of the weights; residuals are multiplied by 2^e when they are stored. A
// weight becomes NaN, so that the host solves for this right side, where it is negative or not
// finite, and where 4^-e would make it so small that digits are lost.
//
// Defines   range   meaning
//   STORED          common.clh
// Work-group: 128, 128, 256. Local memory: 128 doubles; 128 doubles and integers; 2 x 32 x 33
// doubles.
#include "gpu/common/common.clh"

#define PAIRS_GROUP 128
#define TURNED_SIDE 32
#define TURNED_GROUP 256
#define LEAST_WEIGHT (sizeof(STORED) == 4 ? 0x1p-126 : 0x1p-1022)

// ---- P

// Groups: one per row. Rows of P and of `wide` are pairs_ld and wide_ld entries apart, and have
// zeros at their end.
__kernel __attribute__((reqd_work_group_size(PAIRS_GROUP, 1, 1))) void pairs_of_rows(
    __global STORED* a, __global double* pairs, __global double* wide, __global int* gaps, int n,
    int pairs_ld, int wide_ld, int skips_missing) {
  __local double entries[PAIRS_GROUP];
  __local int has_gap;
  const index_t row = get_group_id(0);
  const int item = get_local_id(0);
  a += row * n;
  pairs += row * pairs_ld;
  wide += row * wide_ld;
  if (item == 0) has_gap = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const double own = item < n ? (double)a[item] : 0;
  // Those who write, write the same.
  if (skips_missing && isnan(own)) has_gap = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  const bool is_left_out = has_gap != 0;
  entries[item] = is_left_out ? 0 : own;
  if (is_left_out && item < n) a[item] = 0;
  if (item < wide_ld) wide[item] = entries[item];
  if (item == 0) gaps[row] = is_left_out;
  barrier(CLK_LOCAL_MEM_FENCE);
  int start = 0;
  for (int j = 0; j < n; ++j) {
    if (item <= j) pairs[start + item] = entries[j] * entries[item];
    start += j + 1;
  }
  if (start + item < pairs_ld) pairs[start + item] = 0;
}

// ---- weights

// Groups: one per right side. w_side: the distance of the weights of two right sides, or 0.
__kernel __attribute__((reqd_work_group_size(PAIRS_GROUP, 1, 1))) void weigh_sides(
    __global STORED* b, __global const STORED* w, __global const int* gaps, __global STORED* scaled,
    __global int* exponents, __global int* left_out, int m, int w_side, int has_weights,
    int skips_missing) {
  __local double largest[PAIRS_GROUP];
  __local int missing[PAIRS_GROUP];
  const index_t side = get_group_id(0);
  const int item = get_local_id(0);
  b += side * m;
  w += side * w_side;
  scaled += side * m;
  double most = 0;
  int own_missing = 0;
  for (int i = item; i < m; i += PAIRS_GROUP) {
    const double weight = has_weights ? (double)w[i] : 1.0;
    const bool is_out = weight == 0 || (skips_missing && (gaps[i] != 0 || isnan(b[i])));
    own_missing += is_out ? 1 : 0;
    most = fmax(most, is_out ? 0.0 : weight);
  }
  largest[item] = most;
  missing[item] = own_missing;
  for (int left = PAIRS_GROUP / 2; left > 0; left /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < left) {
      largest[item] = fmax(largest[item], largest[item + left]);
      missing[item] += missing[item + left];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  most = largest[0];
  // ilogb is asked only for numbers that are finite and not zero.
  const int exponent = most > 0 && isfinite(most) ? ilogb(most) >> 1 : 0;
  if (item == 0) {
    exponents[side] = exponent;
    left_out[side] = missing[0];
  }
  for (int i = item; i < m; i += PAIRS_GROUP) {
    const double weight = has_weights ? (double)w[i] : 1.0;
    const bool is_out = weight == 0 || (skips_missing && (gaps[i] != 0 || isnan(b[i])));
    const double smaller = ldexp(weight, -2 * exponent);
    const bool is_good = smaller >= LEAST_WEIGHT && isfinite(smaller);
    scaled[i] = is_out ? (STORED)0 : is_good ? (STORED)smaller : (STORED)NAN;
    if (is_out) b[i] = 0;
  }
}

// Groups: squares of W. Entry s of row i of the results is at i ld + s, and zero past the last
// right side; ld is a multiple of 4.
__kernel __attribute__((reqd_work_group_size(TURNED_GROUP, 1, 1))) void turn_sides(
    __global const STORED* scaled, __global const STORED* b, __global double* of_w,
    __global double* of_b, int m, int count, int ld) {
  __local double square_w[TURNED_SIDE][TURNED_SIDE + 1], square_b[TURNED_SIDE][TURNED_SIDE + 1];
  const int across = (m + TURNED_SIDE - 1) / TURNED_SIDE;
  index_t square;
  const int first_row = split_group(across, &square) * TURNED_SIDE;
  const int first_side = (int)square * TURNED_SIDE;
  const int item = get_local_id(0), col = item % TURNED_SIDE;
  for (int s = item / TURNED_SIDE; s < TURNED_SIDE; s += TURNED_GROUP / TURNED_SIDE) {
    const int i = first_row + col, side = first_side + s;
    const bool exists = i < m && side < count;
    const index_t place = exists ? (index_t)side * m + i : 0;
    const double weight = exists ? (double)scaled[place] : 0;
    square_w[s][col] = weight;
    square_b[s][col] = exists ? weight * (double)b[place] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = item / TURNED_SIDE; r < TURNED_SIDE; r += TURNED_GROUP / TURNED_SIDE) {
    const int i = first_row + r, side = first_side + col;
    if (i < m && side < ld) {
      of_w[(index_t)i * ld + side] = square_w[col][r];
      of_b[(index_t)i * ld + side] = square_b[col][r];
    }
  }
}
