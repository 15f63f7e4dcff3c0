// SPDX-License-Identifier: Apache-2.0
// pack.cl: copies matrices of a caller, which may have any strides, to matrices without gaps, and
// back. An element is one word or, where it is not aligned to its size, several.
//
// Defines, set in pack.cpp              range        meaning
//   WORD                                uint, ulong, uint4      what is copied at a time
//   WORD_PARTS                          1, 2         words of an element, which are neighbours
// Work-group: any size. One work-item copies one word.
#include "gpu/common/inline.clh"
#include "gpu/common/shapes.clh"

#ifndef WORD
#define WORD uint
#endif
#ifndef WORD_PARTS
#define WORD_PARTS 1
#endif

// The place of an entry, in words.
#define PLACE(of, b, i, j, part) \
  (((b) * (of).matrix + (i) * (of).row + (j) * (of).column) * WORD_PARTS + (part))

__kernel void pack_matrices(__global const WORD* from, __global WORD* to, CopyShape shape) {
  const ulong number = get_global_id(0);
  if (number >= (ulong)shape.words) return;
  index_t b, i, j;
  int part = 0;
  // Division of 64 bits takes several times as long.
  if (shape.words <= 0xffffffffL) {
    uint rest = (uint)number;
    if (WORD_PARTS > 1) part = rest % WORD_PARTS;
    if (WORD_PARTS > 1) rest /= WORD_PARTS;
    const uint row = rest / (uint)shape.cols;
    j = rest - row * (uint)shape.cols;
    b = row / (uint)shape.rows;
    i = row - (uint)b * (uint)shape.rows;
  } else {
    const ulong rest = number / WORD_PARTS, row = rest / (ulong)shape.cols;
    part = (int)(number - rest * WORD_PARTS);
    j = rest - row * (ulong)shape.cols;
    b = row / (ulong)shape.rows;
    i = row - (ulong)b * (ulong)shape.rows;
  }
  to[PLACE(shape.to, b, i, j, part)] = from[PLACE(shape.from, b, i, j, part)];
}
