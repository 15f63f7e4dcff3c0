// SPDX-License-Identifier: Apache-2.0
// stale_reads.c: loaded before a program (LD_PRELOAD), ends it where it frees memory into which a
// read of a buffer is pending: one that does not block, until its queue is finished or read with a
// wait, or an event is waited for.
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { most_pending = 64 };

typedef struct {
  _Atomic(void*) host;
  _Atomic(cl_command_queue) queue;
} Pending;

static Pending pending[most_pending];

// Of one queue, or of all.
static void end_reads(cl_command_queue queue) {
  for (Pending* each = pending; each < pending + most_pending; ++each)
    if (queue == NULL || each->queue == queue) each->host = NULL;
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                           size_t size, void* host, cl_uint waits, const cl_event* wait_list,
                           cl_event* event) {
  cl_int (*const read)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint,
                       const cl_event*, cl_event*) = dlsym(RTLD_NEXT, "clEnqueueReadBuffer");
  const cl_int error = read(queue, buffer, blocking, offset, size, host, waits, wait_list, event);
  if (error != CL_SUCCESS) return error;
  if (blocking) end_reads(queue);
  for (Pending* each = pending; !blocking && each < pending + most_pending; ++each) {
    void* none = NULL;
    if (!atomic_compare_exchange_strong(&each->host, &none, host)) continue;
    each->queue = queue;
    break;
  }
  return error;
}

cl_int clFinish(cl_command_queue queue) {
  cl_int (*const finish)(cl_command_queue) = dlsym(RTLD_NEXT, "clFinish");
  const cl_int error = finish(queue);
  end_reads(queue);
  return error;
}

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  cl_int (*const wait)(cl_uint, const cl_event*) = dlsym(RTLD_NEXT, "clWaitForEvents");
  const cl_int error = wait(count, events);
  end_reads(NULL);
  return error;
}

void free(void* memory) {
  static const char text[] = "a read into freed memory is pending\n";
  static void (*next)(void*);
  if (next == NULL) next = dlsym(RTLD_NEXT, "free");
  for (Pending* each = pending; memory != NULL && each < pending + most_pending; ++each) {
    if (each->host != memory) continue;
    const ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(written < 0 ? 98 : 99);
  }
  next(memory);
}
