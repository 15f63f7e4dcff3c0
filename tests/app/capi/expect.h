/* SPDX-License-Identifier: Apache-2.0
 * expect.h: what the C tests of the C interface share: claims, numbers by chance, and matrices with
 * strides. */
#ifndef QRTOOL_TESTS_EXPECT_H
#define QRTOOL_TESTS_EXPECT_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qrtool.h"

static int wrong_claims = 0;

#define EXPECT(claim)                                                                 \
  do {                                                                                \
    if (!(claim)) {                                                                   \
      printf("%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #claim, qrtool_error()); \
      if (++wrong_claims > 20) exit(1);                                               \
    }                                                                                 \
  } while (0)

static uint64_t state_of_chance = 1;
static inline uint64_t chance(void) { /* SplitMix64 */
  uint64_t x = (state_of_chance += 0x9e3779b97f4a7c15u);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
static inline int64_t chance_below(int64_t end) { return (int64_t)(chance() % (uint64_t)end); }
static inline double chance_number(void) {
  return (double)(chance() >> 11) * 0x1p-52 - 1 + (double)(chance() >> 11) * 0x1p-52 - 1 + 1;
}

static inline size_t parts_of(int type) { return type >= QRTOOL_COMPLEX128 ? 2 : 1; }
static inline size_t part_size(int type) {
  return type == QRTOOL_FLOAT64 || type == QRTOOL_COMPLEX128 ? 8 : 4;
}
static inline size_t element_size(int type) { return parts_of(type) * part_size(type); }

/* Memory for matrices with strides of their own, all of it filled with one byte before. */
struct array {
  int type;
  int64_t count, rows, columns;
  int64_t row_stride, column_stride, matrix_stride;
  size_t bytes;
  unsigned char *memory, *first;
};

enum { BY_ROWS, BY_COLUMNS, PADDED, BACKWARDS, INTERLEAVED, ORDERS };
enum { POISON = 0x7a };

static inline struct array new_array(int type, int64_t count, int64_t rows, int64_t columns,
                                     int order) {
  struct array a = {type, count, rows, columns, 0, 0, 0, 0, NULL, NULL};
  int64_t elements = 0, origin = 0;
  a.row_stride = columns;
  a.column_stride = 1;
  a.matrix_stride = rows * columns;
  if (order == BY_COLUMNS) {
    a.row_stride = 1;
    a.column_stride = rows;
  } else if (order == PADDED) {
    a.row_stride = columns + 3;
    a.matrix_stride = rows * (columns + 3) + 5;
  } else if (order == INTERLEAVED) { /* every second row and column; matrices lie innermost */
    a.matrix_stride = 1;
    a.column_stride = 2 * (count > 0 ? count : 1);
    a.row_stride = 2 * (columns > 0 ? columns : 1) * a.column_stride;
  }
  elements = 8 + (count > 0 ? count : 1) * a.matrix_stride + (rows + 1) * a.row_stride +
             (columns + 1) * a.column_stride;
  if (order == BACKWARDS && count * rows * columns > 0) {
    a.row_stride = -columns;
    a.column_stride = -1;
    a.matrix_stride = -rows * columns;
    origin = count * rows * columns - 1;
  }
  a.bytes = (size_t)elements * element_size(type);
  a.memory = malloc(a.bytes);
  memset(a.memory, POISON, a.bytes);
  a.first = a.memory + (size_t)origin * element_size(type);
  return a;
}
static inline void free_array(struct array* a) { free(a->memory); }

static inline void* place_in(const struct array* a, int64_t b, int64_t i, int64_t j) {
  return a->first + (b * a->matrix_stride + i * a->row_stride + j * a->column_stride) *
                        (int64_t)element_size(a->type);
}
static inline double part(const struct array* a, int64_t b, int64_t i, int64_t j, size_t number) {
  const void* place = place_in(a, b, i, j);
  return part_size(a->type) == 8 ? ((const double*)place)[number]
                                 : (double)((const float*)place)[number];
}
static inline void set_part(struct array* a, int64_t b, int64_t i, int64_t j, size_t number,
                            double x) {
  void* place = place_in(a, b, i, j);
  if (part_size(a->type) == 8)
    ((double*)place)[number] = x;
  else
    ((float*)place)[number] = (float)x;
}
static inline void fill(struct array* a) {
  for (int64_t b = 0; b < a->count; ++b)
    for (int64_t i = 0; i < a->rows; ++i)
      for (int64_t j = 0; j < a->columns; ++j)
        for (size_t p = 0; p < parts_of(a->type); ++p) set_part(a, b, i, j, p, chance_number());
}
/* The same entries in another order. */
static inline struct array copy_of(const struct array* a, int order) {
  struct array copy = new_array(a->type, a->count, a->rows, a->columns, order);
  for (int64_t b = 0; b < a->count; ++b)
    for (int64_t i = 0; i < a->rows; ++i)
      for (int64_t j = 0; j < a->columns; ++j)
        memcpy(place_in(&copy, b, i, j), place_in(a, b, i, j), element_size(a->type));
  return copy;
}
static inline int have_same_entries(const struct array* a, const struct array* other) {
  for (int64_t b = 0; b < a->count; ++b)
    for (int64_t i = 0; i < a->rows; ++i)
      for (int64_t j = 0; j < a->columns; ++j)
        if (memcmp(place_in(a, b, i, j), place_in(other, b, i, j), element_size(a->type)) != 0)
          return 0;
  return 1;
}
/* Whether nothing outside of the entries was written: then as many bytes are poison as there are in
 * a copy of the entries in new memory. */
static inline int keeps_its_padding(const struct array* a) {
  unsigned char* memory = malloc(a->bytes);
  struct array entries = *a;
  int same = 0;
  memset(memory, POISON, a->bytes);
  entries.memory = memory;
  entries.first = memory + (a->first - a->memory);
  for (int64_t b = 0; b < a->count; ++b)
    for (int64_t i = 0; i < a->rows; ++i)
      for (int64_t j = 0; j < a->columns; ++j)
        memcpy(place_in(&entries, b, i, j), place_in(a, b, i, j), element_size(a->type));
  same = memcmp(memory, a->memory, a->bytes) == 0;
  free(memory);
  return same;
}
static inline qrtool_matrices matrices(const struct array* a) {
  qrtool_matrices result = {0};
  result.data = a->first;
  result.type = a->type;
  result.count = a->count;
  result.rows = a->rows;
  result.columns = a->columns;
  result.row_stride = a->row_stride;
  result.column_stride = a->column_stride;
  result.matrix_stride = a->matrix_stride;
  return result;
}
static inline qrtool_place place(const struct array* a) {
  qrtool_place result = {0};
  result.data = a->first;
  result.row_stride = a->row_stride;
  result.column_stride = a->column_stride;
  result.matrix_stride = a->matrix_stride;
  return result;
}

#endif
