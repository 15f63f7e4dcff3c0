// SPDX-License-Identifier: Apache-2.0
// sums.cl: a checksum for every matrix of a buffer, to be compared with the host's: what was
// uploaded, and what comes back (gpu/check/device_sums.hpp).
//
//     sum = w_0 + 3 w_1 + 5 w_2 + ..  (mod 2^64)      w_i: the words of 32 bits of the matrix
//
// One changed bit changes the sum, because every weight is odd, and so do two words that change
// places. Integer sums have no order, so that device and host add in the order that suits them.
//
//     matrix 0                matrix 1
//   | part 0 | part 1 | .. | part 0 | ..      a part has SUM_WORDS words, the last one fewer
//     sum      sum           sum              a group adds a part; the host adds the parts
//
// Defines, set in device_sums.cpp   range             meaning
//   SUM_GROUP                       32 .. 256         work-items of a group, a power of two
//   SUM_WORDS                       4096 .. 2^20      words of a part
// Work-group: SUM_GROUP. Local memory: 8 SUM_GROUP bytes.
#include "gpu/common/inline.clh"
#include "gpu/common/shapes.clh"

#ifndef SUM_GROUP
#define SUM_GROUP 256
#endif
#ifndef SUM_WORDS
#define SUM_WORDS 65536
#endif

__attribute__((reqd_work_group_size(SUM_GROUP, 1, 1))) __kernel void sum_words(
    __global const uint* buffer, __global ulong* sums, SumShape shape) {
  const long matrix = get_group_id(0) / shape.parts;
  const int part = get_group_id(0) % shape.parts, item = get_local_id(0);
  const long first = (long)part * SUM_WORDS;
  const long end = min(first + SUM_WORDS, (long)shape.words);
  __global const uint* words = buffer + matrix * shape.words;
  ulong sum = 0;
  for (long i = first + item; i < end; i += SUM_GROUP) {
    sum += (ulong)words[i] * (uint)(2 * i + 1);
  }
  __local ulong partial[SUM_GROUP];
  partial[item] = sum;
  for (int left = SUM_GROUP / 2; left > 0; left /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < left) partial[item] += partial[item + left];
  }
  if (item == 0) sums[matrix * shape.sums_of_matrix + shape.first_sum + part] = partial[0];
}
