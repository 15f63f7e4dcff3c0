// SPDX-License-Identifier: Apache-2.0
// measures.cl: what R says of each matrix of a batch, in float64: its norm, estimates of condition
// numbers, the weights of columns, and the norms of the rows of R^-1
// (core/solve/ranked/triangular.hpp has the estimates).
//
//   s    for the smallest singular value: LINPACK's growing solution (trco), then
//        STEPS_OF_ESTIMATES times R^-1 and R^-T
//   p    for the largest one: the longest column, then as often R and R'
//
// Both are taken for R and for R D with D the powers of two that bring the columns to norms from
// 1/2 to 1: a pass over R moves four vectors, and reads each entry once. Steps of such a method
// never grow less than the one before, so that the last one is the estimate, and nothing else needs
// a root; in between vectors are divided by powers of two.
//
// Work-item c of a team has the entries c, c + TEAM, .. of each vector in registers.
//
//   down: i = 0, 1, ..           up: i = n - 1, n - 2, ..
//   s_i is known to all          s_i is known to all          the others then subtract or add
//   R(i, c), c > i               R(c, i), c < i               its multiples
//
// Defines, set in measures.cpp   range     meaning
//   STORED, SUB_GROUP_BODY                 common.clh
//   COLUMNS                      1 .. 512  columns of A
//   TEAM, TEAMS                            team.clh
//   TRIANGLE                     0, 1      1: R is copied to local memory, one row of the triangle
//                                          after another; 0: it is read where it is
// Work-group: TEAMS teams, each with one system after another. Local memory: MeasureRoom.
#include "gpu/common/common.clh"
#include "gpu/solve/parts/columns.clh"
#include "gpu/solve/parts/powers.clh"
#include "gpu/solve/parts/team.clh"

#ifndef COLUMNS
#define COLUMNS 16
#endif
#ifndef TRIANGLE
#define TRIANGLE 1
#endif

// R as it is read: entry (i, j) is at START_OF_ROW(i) + j.
#if TRIANGLE
#define START_OF_ROW(i) ((i) * (2 * COLUMNS - (i) - 1) / 2)
#define MEASURED_ENTRIES LOWER_ENTRIES
typedef __local const STORED* Triangle;
#else
#define START_OF_ROW(i) ((i) * COLUMNS)
#define MEASURED_ENTRIES 0
typedef __global const STORED* Triangle;
#endif
// The triangles of adjacent teams begin in different banks.
#define TRIANGLE_BANKS ((MEASURED_ENTRIES + 31) / 32 * 32 + TEAM % 32)
// An array has at least one entry.
#define TRIANGLE_ROOM (TRIANGLE_BANKS > 0 ? TRIANGLE_BANKS : 1)

// Local memory of a team. Entries of vectors that are made known take turns between two places.
typedef struct {
  __local STORED* triangle;  // TRIANGLE_ROOM
  __local double2* known;    // s_i, p_i, s_i, p_i, each TEAMS after the one before
  __local double* partial;   // 4 SUM_ENTRIES
} MeasureRoom;

// Entry c of the vectors for R and for R D.
typedef double2 Entries[OWNED];

// What a work-item knows of its columns.
typedef struct {
  double inverse[OWNED];  // 1 / R_cc
  Entries weight;         // of D, where all columns have the same weight, and of D
} Columns;

INLINE void scale_entries(Entries v, const double2* by) {
#pragma unroll
  for (int t = 0; t < OWNED; ++t) v[t] *= by[t];
}
// v := D^-1 v
INLINE void unscale_entries(Entries v, const Columns* at) {
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    v[t].x *= reciprocal_of_power(at->weight[t].x);
    v[t].y *= reciprocal_of_power(at->weight[t].y);
  }
}

INLINE double2 squares_of_entries(const Entries v) {
  double2 sum = 0;
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    if (ITEM + TEAM * t < COLUMNS) sum += v[t] * v[t];
  }
  return sum;
}

// The place of s_i, and after it that of p_i.
INLINE __local double2* place_of_step(const MeasureRoom room, int i) {
  return room.known + (i & 1) * 2 * TEAMS;
}

// v += factor entry
INLINE void add_multiple(double2* v, double2 factor, double entry) {
  v->x = fma(factor.x, entry, v->x);
  v->y = fma(factor.y, entry, v->y);
}

// Makes entry i of s / R_ii and of p known, which work-item `item` has as its entry t. Returns
// their place.
INLINE __local double2* begin_step(const MeasureRoom room, const Columns* at, Entries s,
                                   const Entries p, int t, int item) {
  __local double2* place = place_of_step(room, TEAM * t + item);
  if (ITEM == item) {
    s[t] *= at->inverse[t];
    place[0] = s[t];
    place[TEAMS] = p[t];
  }
  sync_team();
  return place;
}

// s := R^-T s,  p := R' p.
INLINE void pass_down(const MeasureRoom room, Triangle r, const Columns* at, Entries s, Entries p) {
  Entries product;
#pragma unroll
  for (int t = 0; t < OWNED; ++t) product[t] = 0;
  int start = 0;
  sync_team();
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
#pragma unroll 1
    for (int item = 0; item < min(TEAM, COLUMNS - TEAM * t); ++item) {
      const int i = TEAM * t + item;
      __local const double2* place = begin_step(room, at, s, p, t, item);
      const double2 known = place[0], of_p = place[TEAMS];
#pragma unroll
      for (int u = t; u < OWNED; ++u) {
        const int c = ITEM + TEAM * u;
        const double entry = c >= i && c < COLUMNS ? (double)r[start + c] : 0.0;
        add_multiple(&product[u], of_p, entry);
        add_multiple(&s[u], -known, c > i ? entry : 0.0);
      }
      start += START_OF_ROW(i + 1) - START_OF_ROW(i);
    }
  }
#pragma unroll
  for (int t = 0; t < OWNED; ++t) p[t] = product[t];
}

// s := R^-1 s,  p := R p.
INLINE void pass_up(const MeasureRoom room, Triangle r, const Columns* at, Entries s, Entries p) {
  Entries product;
#pragma unroll
  for (int t = 0; t < OWNED; ++t) product[t] = 0;
  sync_team();
#pragma unroll
  for (int t = OWNED - 1; t >= 0; --t) {
#pragma unroll 1
    for (int item = min(TEAM, COLUMNS - TEAM * t) - 1; item >= 0; --item) {
      const int i = TEAM * t + item;
      __local const double2* place = begin_step(room, at, s, p, t, item);
      const double2 known = place[0], of_p = place[TEAMS];
#pragma unroll
      for (int u = 0; u <= t; ++u) {
        const int c = ITEM + TEAM * u;
        const double entry = c <= i ? (double)r[START_OF_ROW(c) + i] : 0.0;
        add_multiple(&product[u], of_p, entry);
        add_multiple(&s[u], -known, c < i ? entry : 0.0);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < OWNED; ++t) p[t] = product[t];
}

// s := (R D)^-T v for signs v_i that let s grow.
INLINE void grow_solution(const MeasureRoom room, Triangle r, const Columns* at, Entries s) {
#pragma unroll
  for (int t = 0; t < OWNED; ++t) s[t] = 0;
  int start = 0;
  sync_team();
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const double2 unit = {reciprocal_of_power(at->weight[t].x),
                          reciprocal_of_power(at->weight[t].y)};
#pragma unroll 1
    for (int item = 0; item < min(TEAM, COLUMNS - TEAM * t); ++item) {
      const int i = TEAM * t + item;
      __local double2* place = place_of_step(room, i);
      if (ITEM == item) {
        s[t].x = (s[t].x > 0 ? s[t].x + unit.x : s[t].x - unit.x) * at->inverse[t];
        s[t].y = (s[t].y > 0 ? s[t].y + unit.y : s[t].y - unit.y) * at->inverse[t];
        place[0] = s[t];
      }
      sync_team();
      const double2 known = place[0];
#pragma unroll
      for (int u = t; u < OWNED; ++u) {
        const int c = ITEM + TEAM * u;
        const double entry = c > i && c < COLUMNS ? (double)r[start + c] : 0.0;
        add_multiple(&s[u], -known, entry);
      }
      start += START_OF_ROW(i + 1) - START_OF_ROW(i);
    }
  }
}

// Takes R into local memory, the reciprocals of its diagonal, and the squared norms of its columns.
INLINE void take_factor(const MeasureRoom room, __global const STORED* r, Columns* at,
                        double squares[OWNED]) {
  STORED diagonal[OWNED];
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    squares[t] = 0;
    diagonal[t] = 0;
  }
  sync_team();
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
#pragma unroll 8
    for (int i = TEAM * t; i < min(TEAM * (t + 1), COLUMNS); ++i) {
#pragma unroll
      for (int u = t; u < OWNED; ++u) {
        const int c = ITEM + TEAM * u;
        const STORED entry = c >= i && c < COLUMNS ? r[(index_t)i * COLUMNS + c] : 0;
#if TRIANGLE
        if (c >= i && c < COLUMNS) room.triangle[START_OF_ROW(i) + c] = entry;
#endif
        if (c == i) diagonal[u] = entry;
        squares[u] = fma((double)entry, (double)entry, squares[u]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < OWNED; ++t) at->inverse[t] = 1 / (double)diagonal[t];
  sync_team();
}

// weight := that of each column, for R and for R D. p := the longest column of each.
// Returns ||R||_F^2, and ||R D||_F^2 in of_scaled.
INLINE double weigh_columns(const MeasureRoom room, const double squares[OWNED], Columns* at,
                            Entries p, double* of_scaled) {
  double norms[2] = {0, 0};
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const double weight = weight_of_column(squares[t]);
    norms[0] += squares[t];
    norms[1] += squares[t] * weight * weight;
  }
  combine_team(room.partial, norms, 2, false);
  const double norm = norms[0];
  *of_scaled = norms[1];
  // The last bits of a squared norm hold the column's number.
  long keys[2 * OWNED];
  double most[2] = {0, 0};
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const int c = ITEM + TEAM * t;
    at->weight[t].x = weight_of_column(norm);
    at->weight[t].y = weight_of_column(squares[t]);
    const double scaled = squares[t] * at->weight[t].y * at->weight[t].y;
    keys[2 * t] = (as_long(squares[t]) | 511) - c;
    keys[2 * t + 1] = (as_long(scaled) | 511) - c;
#pragma unroll
    for (int k = 0; k < 2; ++k)
      if (c < COLUMNS) most[k] = fmax(most[k], as_double(keys[2 * t + k]));
  }
  combine_team(room.partial, most, 2, true);
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    p[t].x = keys[2 * t] == as_long(most[0]);
    p[t].y = keys[2 * t + 1] == as_long(most[1]);
  }
  return norm;
}

// numbers := the squares of s and p.
INLINE void measure_vectors(const MeasureRoom room, const Entries s, const Entries p,
                            double numbers[4]) {
  const double2 of_s = squares_of_entries(s), of_p = squares_of_entries(p);
  numbers[0] = of_s.x;
  numbers[1] = of_s.y;
  numbers[2] = of_p.x;
  numbers[3] = of_p.y;
  combine_team(room.partial, numbers, 4, false);
}

// s := s / its norm, to a power of two; of_s: its squares, of which the same is divided.
INLINE void bring_to_one(Entries s, double of_s[2]) {
  const double2 factor = {power_to_one(of_s[0]), power_to_one(of_s[1])};
#pragma unroll
  for (int t = 0; t < OWNED; ++t) s[t] *= factor;
  of_s[0] = of_s[0] * factor.x * factor.x;
  of_s[1] = of_s[1] * factor.y * factor.y;
}

INLINE void measure_triangle(const MeasureRoom room, Triangle r, Columns* at,
                             const double squares[OWNED], FactorFindings* found) {
  Entries s, p;
  double of_scaled;
  found->norm = sqrt(weigh_columns(room, squares, at, p, &of_scaled));
  found->scaled_norm = sqrt(of_scaled);
  grow_solution(room, r, at, s);
  double before[4], after[4];
  measure_vectors(room, s, p, after);
  bring_to_one(s, after);
#pragma unroll 1
  for (int step = 0; step < STEPS_OF_ESTIMATES; ++step) {
    scale_entries(p, at->weight);
    pass_up(room, r, at, s, p);
    unscale_entries(s, at);
    measure_vectors(room, s, p, before);
    bring_to_one(s, before);
    unscale_entries(s, at);
    pass_down(room, r, at, s, p);
    scale_entries(p, at->weight);
    measure_vectors(room, s, p, after);
#pragma unroll
    for (int k = 0; k < 2; ++k) before[k] = after[k] / before[k];
    bring_to_one(s, after);
  }
  found->condition = sqrt(after[2] / before[2]) / least_value_for(sqrt(before[0]));
  found->smallest = least_value_for(sqrt(before[1]));
  found->scaled_condition = sqrt(after[3] / before[3]) / found->smallest;
}

// The columns of R^-1 that are computed together: each entry of it is read once for all of them.
#define COLUMNS_AT_ONCE 8

// norms[i] := the norm of row i of R^-1, unless norms is null: y R = e_i, where y_j is at
// scratch[j COLUMNS + i]. y_j is zero for j < i, and is read from the first i of entry t on. Norms
// are stored here, as PoCL 3.1 forgot the condition of a store behind the last barrier.
INLINE void measure_inverse(const MeasureRoom room, Triangle r, const Columns* at,
                            __global double* scratch, __global double* norms) {
  double squares[OWNED];
#pragma unroll
  for (int t = 0; t < OWNED; ++t) squares[t] = 0;
#pragma unroll 1
  for (int first = 0; first < COLUMNS; first += COLUMNS_AT_ONCE) {
    double inverses[COLUMNS_AT_ONCE];
    sync_team();
#pragma unroll
    for (int t = 0; t < OWNED; ++t) {
      const int u = ITEM + TEAM * t - first;
      if (u >= 0 && u < COLUMNS_AT_ONCE)
        ((__local double*)(room.known + u / 2 * TEAMS))[u % 2] = at->inverse[t];
    }
    sync_team();
#pragma unroll
    for (int u = 0; u < COLUMNS_AT_ONCE; ++u)
      inverses[u] = ((__local const double*)(room.known + u / 2 * TEAMS))[u % 2];
#pragma unroll
    for (int t = 0; t < OWNED; ++t) {
      const int i = ITEM + TEAM * t;
      if (i >= COLUMNS) continue;
      __global double* own = scratch + i;
      double sums[COLUMNS_AT_ONCE];
#pragma unroll
      for (int u = 0; u < COLUMNS_AT_ONCE; ++u) sums[u] = 0;
#pragma unroll 4
      for (int k = TEAM * t; k < first; ++k) {
        const double y = own[(index_t)k * COLUMNS];
#pragma unroll
        for (int u = 0; u < COLUMNS_AT_ONCE; ++u)
          sums[u] = fma(y, (double)r[START_OF_ROW(k) + min(first + u, COLUMNS - 1)], sums[u]);
      }
#pragma unroll
      for (int u = 0; u < COLUMNS_AT_ONCE; ++u) {
        const int j = first + u;
        if (j < COLUMNS && j >= TEAM * t) {
          const double y = (j == i ? 1.0 : -sums[u]) * inverses[u];
          own[(index_t)j * COLUMNS] = y;
          squares[t] = fma(y, y, squares[t]);
#pragma unroll
          for (int v = u + 1; v < COLUMNS_AT_ONCE; ++v) {
            const int col = min(first + v, COLUMNS - 1);
            sums[v] = fma(y, (double)r[START_OF_ROW(j) + col], sums[v]);
          }
        }
      }
      if (first + COLUMNS_AT_ONCE >= COLUMNS && norms != 0) norms[i] = sqrt(squares[t]);
    }
  }
}

// A group takes TEAMS systems, then those after the ones of all groups, of which there are at most
// `groups`; `scratch` has COLUMNS^2 numbers for each team.
__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void measure_factors(
    __global const STORED* all_r, __global FactorFindings* findings, __global double* of_columns,
    __global double* scratch, SystemShape shape, int groups) {
  __local STORED triangles[TEAMS * TRIANGLE_ROOM];
  __local double2 known[4 * TEAMS];
  __local double partials[TEAMS * 4 * SUM_ENTRIES];
  const MeasureRoom room = {triangles + TEAM_NUMBER * TRIANGLE_ROOM, known + TEAM_NUMBER,
                            partials + TEAM_NUMBER * 4 * SUM_ENTRIES};
  const index_t team = (index_t)get_group_id(0) * TEAMS + TEAM_NUMBER;
  scratch += shape.wants_se ? team * COLUMNS * COLUMNS : 0;
  for (index_t first = (index_t)get_group_id(0) * TEAMS; first < shape.count;
       first += (index_t)groups * TEAMS) {
    const bool exists = first + TEAM_NUMBER < shape.count;
    const index_t system = exists ? first + TEAM_NUMBER : shape.count - 1;
    __global const STORED* r = all_r + system * COLUMNS * COLUMNS;
    Columns at;
    double squares[OWNED];
    take_factor(room, r, &at, squares);
#if TRIANGLE
    Triangle read = room.triangle;
#else
    Triangle read = r;
#endif
    FactorFindings found;
    measure_triangle(room, read, &at, squares, &found);
    if (ITEM == 0 && exists) findings[system] = found;
    __global double* columns = of_columns + system * NUMBERS_OF_COLUMNS;
#pragma unroll
    for (int t = 0; t < OWNED; ++t)
      if (exists && ITEM + TEAM * t < COLUMNS) columns[ITEM + TEAM * t] = at.weight[t].y;
    if (shape.wants_se) measure_inverse(room, read, &at, scratch, exists ? columns + COLUMNS : 0);
  }
}
