/* A libcurl of those functions that HDF5 names. HDF5 of Debian is linked with libcurl for files in
 * Amazon S3, which qrtool never opens, and libcurl with 27 further libraries: without them a
 * process of qrtool starts in half the time. The tests start 12,000. A call of any of these
 * functions ends the process. */
#include <stdlib.h>

#define MISSING(name) \
  void name(void) { abort(); }
MISSING(curl_easy_cleanup)
MISSING(curl_easy_init)
MISSING(curl_easy_perform)
MISSING(curl_easy_setopt)
MISSING(curl_slist_append)
MISSING(curl_slist_free_all)

/* HDF5 calls these two when it starts and ends its driver for S3. */
int curl_global_init(long flags) {
  (void)flags;
  return 0;
}
void curl_global_cleanup(void) {}
