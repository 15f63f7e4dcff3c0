// SPDX-License-Identifier: Apache-2.0
// pack.cl: copies matrices of a caller, which may have any strides, to matrices without gaps, and
// back. An element is one word or, where it is not aligned to its size, several.
//
// Defines, set in pack.cpp      range                meaning
//   COPIED_WORD                 uint, ulong, uint4   what is copied at a time
//   WORDS_OF_ENTRY              1, 2                 which are neighbours
// Work-group: any size. One work-item copies one word.
#include "gpu/common/inline.clh"
#include "gpu/common/shapes.clh"

#ifndef COPIED_WORD
#define COPIED_WORD uint
#endif
#ifndef WORDS_OF_ENTRY
#define WORDS_OF_ENTRY 1
#endif

// The place of an entry, in words.
#define ENTRY_PLACE(of, b, i, j, part) \
  (((b) * (of).matrix + (i) * (of).row + (j) * (of).column) * WORDS_OF_ENTRY + (part))

__kernel void pack_matrices(__global const COPIED_WORD* from, __global COPIED_WORD* to,
                            CopyShape shape) {
  const ulong number = (ulong)get_group_id(0) * get_local_size(0) + get_local_id(0);
  if (number >= (ulong)shape.words) return;
  index_t b, i, j;
  int part = 0;
  // Division of 64 bits takes several times as long.
  if (shape.words <= 0xffffffffL) {
    uint rest = (uint)number;
    if (WORDS_OF_ENTRY > 1) part = rest % WORDS_OF_ENTRY;
    if (WORDS_OF_ENTRY > 1) rest /= WORDS_OF_ENTRY;
    const uint row = rest / (uint)shape.cols;
    j = rest - row * (uint)shape.cols;
    b = row / (uint)shape.rows;
    i = row - (uint)b * (uint)shape.rows;
  } else {
    const ulong rest = number / WORDS_OF_ENTRY, row = rest / (ulong)shape.cols;
    part = (int)(number - rest * WORDS_OF_ENTRY);
    j = rest - row * (ulong)shape.cols;
    b = row / (ulong)shape.rows;
    i = row - (ulong)b * (ulong)shape.rows;
  }
  to[ENTRY_PLACE(shape.to, b, i, j, part)] = from[ENTRY_PLACE(shape.from, b, i, j, part)];
}
