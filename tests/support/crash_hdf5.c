/* SPDX-License-Identifier: Apache-2.0 */
/* crash_hdf5.c: preloaded into the tool; a function of the HDF5 library crashes or fails, as on a
 * damaged file.
 *
 * QRTOOL_CRASH_CALL    H5Oopen, H5Dread or H5Dwrite_chunk; with H5Lexists, the look-up of /Q fails
 * QRTOOL_CRASH_SIGNAL  number of the signal; 0: the function never returns */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void may_crash(const char* call) {
  const char* chosen = getenv("QRTOOL_CRASH_CALL");
  if (!chosen || strcmp(chosen, call) != 0) return;
  const int number = atoi(getenv("QRTOOL_CRASH_SIGNAL"));
  for (volatile int rounds = 0; number == 0; ++rounds) rounds = 0;
  raise(number);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

hid_t H5Oopen(hid_t place, const char* name, hid_t access) {
  may_crash("H5Oopen");
  return NEXT(H5Oopen)(place, name, access);
}

htri_t H5Lexists(hid_t place, const char* name, hid_t access) {
  const char* chosen = getenv("QRTOOL_CRASH_CALL");
  const int fails = chosen && strcmp(chosen, "H5Lexists") == 0 && strcmp(name, "Q") == 0;
  return fails ? -1 : NEXT(H5Lexists)(place, name, access);
}

herr_t H5Dread(hid_t dataset, hid_t type, hid_t memory, hid_t space, hid_t transfer, void* to) {
  may_crash("H5Dread");
  return NEXT(H5Dread)(dataset, type, memory, space, transfer, to);
}

herr_t H5Dwrite_chunk(hid_t dataset, hid_t transfer, uint32_t filters, const hsize_t* offset,
                      size_t bytes, const void* from) {
  may_crash("H5Dwrite_chunk");
  return NEXT(H5Dwrite_chunk)(dataset, transfer, filters, offset, bytes, from);
}
