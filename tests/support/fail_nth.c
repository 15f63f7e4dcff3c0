/* SPDX-License-Identifier: Apache-2.0 */
/* fail_nth.c: preloaded into the tool; the Nth call of one function fails as on a full disk.
 *
 * QRTOOL_FAIL_CALL   pwrite (pwritev too), write, ftruncate, fsync, fstat, rename, fallocate, open,
 * read, pread (preadv too), or malloc (calloc, realloc and aligned memory, too), or pthread_create
 * QRTOOL_FAIL_NTH    which call fails, counted from 1
 * QRTOOL_FAIL_ERRNO  number of the error
 * QRTOOL_FAIL_STICKY 1: all calls from then on fail
 * QRTOOL_FAIL_SHORT  1: the read or pread does not fail, but reads one byte of several
 * QRTOOL_FAIL_LOG    file that gets a line when a call failed
 * QRTOOL_FAIL_KILL   1: the call ends the process by SIGKILL instead; another number: the call gets
 * this signal, and goes on where it is blocked
 *
 * Calls on the standard streams are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int number_of(const char* name) {
  const char* text = getenv(name);
  return text ? atoi(text) : 0;
}

static int must_fail(const char* call) {
  static atomic_int calls;
  const char* chosen = getenv("QRTOOL_FAIL_CALL");
  if (!chosen || strcmp(chosen, call) != 0) return 0;
  const int number = atomic_fetch_add(&calls, 1) + 1, nth = number_of("QRTOOL_FAIL_NTH");
  if (number != nth && !(number > nth && number_of("QRTOOL_FAIL_STICKY"))) return 0;
  const int log = (int)syscall(SYS_openat, AT_FDCWD, getenv("QRTOOL_FAIL_LOG"),
                               O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (log >= 0) close(log);
  const int sent = number_of("QRTOOL_FAIL_KILL");
  if (sent) {
    raise(sent == 1 ? SIGKILL : sent);
    return 0;
  }
  errno = number_of("QRTOOL_FAIL_ERRNO");
  return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Whether a call that reads `size` bytes fails; where it only reads less, the size is changed. */
static int read_fails(const char* call, size_t* size) {
  if (!must_fail(call)) return 0;
  if (!number_of("QRTOOL_FAIL_SHORT")) return 1;
  if (*size > 1) *size = 1;
  return 0;
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return must_fail("pwrite") ? -1 : NEXT(pwrite)(fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return must_fail("pwrite") ? -1 : NEXT(pwrite64)(fd, data, size, offset);
}
ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  return must_fail("pwrite") ? -1 : NEXT(pwritev)(fd, parts, count, offset);
}
ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t offset) {
  return must_fail("pwrite") ? -1 : NEXT(pwritev64)(fd, parts, count, offset);
}
ssize_t write(int fd, const void* data, size_t size) {
  return fd > 2 && must_fail("write") ? -1 : NEXT(write)(fd, data, size);
}
ssize_t read(int fd, void* data, size_t size) {
  return fd > 2 && read_fails("read", &size) ? -1 : NEXT(read)(fd, data, size);
}
ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  return read_fails("pread", &size) ? -1 : NEXT(pread)(fd, data, size, offset);
}
ssize_t pread64(int fd, void* data, size_t size, off64_t offset) {
  return read_fails("pread", &size) ? -1 : NEXT(pread64)(fd, data, size, offset);
}
ssize_t preadv(int fd, const struct iovec* parts, int count, off_t offset) {
  size_t first = parts->iov_len;
  if (read_fails("pread", &first)) return -1;
  if (first == parts->iov_len) return NEXT(preadv)(fd, parts, count, offset);
  return NEXT(pread)(fd, parts->iov_base, first, offset);
}
ssize_t preadv64(int fd, const struct iovec* parts, int count, off64_t offset) {
  size_t first = parts->iov_len;
  if (read_fails("pread", &first)) return -1;
  if (first == parts->iov_len) return NEXT(preadv64)(fd, parts, count, offset);
  return NEXT(pread64)(fd, parts->iov_base, first, offset);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return must_fail("open") ? -1 : NEXT(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return must_fail("open") ? -1 : NEXT(open64)(path, flags, mode);
}
int ftruncate(int fd, off_t size) {
  return must_fail("ftruncate") ? -1 : NEXT(ftruncate)(fd, size);
}
int ftruncate64(int fd, off64_t size) {
  return must_fail("ftruncate") ? -1 : NEXT(ftruncate64)(fd, size);
}
int fsync(int fd) { return must_fail("fsync") ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return must_fail("fsync") ? -1 : NEXT(fdatasync)(fd); }
int fstat(int fd, struct stat* status) {
  return fd > 2 && must_fail("fstat") ? -1 : NEXT(fstat)(fd, status);
}
int fstat64(int fd, struct stat64* status) {
  return fd > 2 && must_fail("fstat") ? -1 : NEXT(fstat64)(fd, status);
}
int rename(const char* from, const char* to) {
  return must_fail("rename") ? -1 : NEXT(rename)(from, to);
}
int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) {
  return must_fail("rename") ? -1 : NEXT(renameat2)(from_fd, from, to_fd, to, flags);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return must_fail("fallocate") ? -1 : NEXT(fallocate)(fd, mode, offset, size);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) {
  return must_fail("fallocate") ? -1 : NEXT(fallocate64)(fd, mode, offset, size);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  return must_fail("pthread_create") ? errno
                                     : NEXT(pthread_create)(thread, attributes, start, argument);
}

/* dlsym may allocate, so that the C library's own names are called. */
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) { return must_fail("malloc") ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return must_fail("malloc") ? NULL : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  return must_fail("malloc") ? NULL : __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return must_fail("malloc") ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (must_fail("malloc")) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
