/* SPDX-License-Identifier: Apache-2.0 */
/* same_bytes_filter.c: a plugin of HDF5 whose filter makes of a chunk the same bytes, and fails
 * where the first of them is 255. */
#include <H5PLextern.h>

static size_t keep(unsigned flags, size_t count, const unsigned values[], size_t bytes,
                   size_t* room, void** data) {
  (void)flags, (void)count, (void)values, (void)room;
  return *(const unsigned char*)*data == 255 ? 0 : bytes;
}

static const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 300, 1, 1, "same bytes", NULL, NULL, keep};

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info(void) { return &filter; }
