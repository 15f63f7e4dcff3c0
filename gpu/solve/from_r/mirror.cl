// SPDX-License-Identifier: Apache-2.0
// mirror.cl: copies R to its other side, below the diagonal, so that both R and R' have rows that
// work-items read one beside another.
//
//   mirror_factors    R(j, i) := R(i, j) for j > i      square of MIRRORED x MIRRORED entries
//
// Defines, set in mirror.cpp   range   meaning
//   STORED                             common.clh
//   COLUMNS                    1 ..    columns of A
// Work-group: MIRRORED x 8. Local memory: MIRRORED (MIRRORED + 1) entries.
#include "gpu/common/common.clh"

#ifndef COLUMNS
#define COLUMNS 256
#endif
#define MIRRORED 32
#define MIRRORS ((COLUMNS + MIRRORED - 1) / MIRRORED)

__kernel __attribute__((reqd_work_group_size(MIRRORED * 8, 1, 1))) void mirror_factors(
    __global STORED* r) {
  __local STORED square[MIRRORED * (MIRRORED + 1)];
  index_t number;
  const int place = split_group(MIRRORS * MIRRORS, &number);
  const int down = place / MIRRORS * MIRRORED, across = place % MIRRORS * MIRRORED;
  const int lane = (int)get_local_id(0) % MIRRORED, first = (int)get_local_id(0) / MIRRORED;
  const int rows = across < down ? 0 : MIRRORED;
  r += number * COLUMNS * COLUMNS;
  for (int i = first; i < rows; i += 8) {
    const int row = min(down + i, COLUMNS - 1), col = min(across + lane, COLUMNS - 1);
    square[i * (MIRRORED + 1) + lane] = r[row * COLUMNS + col];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = first; i < rows; i += 8) {
    const int row = across + i, col = down + lane;
    if (row < COLUMNS && row > col) r[row * COLUMNS + col] = square[lane * (MIRRORED + 1) + i];
  }
}
