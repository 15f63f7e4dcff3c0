// SPDX-License-Identifier: Apache-2.0
// older_glibc.c: what the static C++ library of Debian 12 takes from a glibc newer than 2.31. The
// wheel has it.
#include <stdint.h>
#include <sys/random.h>

// There may always be several threads.
char __libc_single_threaded = 0;

uint32_t arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
  }
  return number;
}
