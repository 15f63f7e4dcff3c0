// SPDX-License-Identifier: Apache-2.0
// fail_cl.c: an OpenCL layer (OPENCL_LAYERS) that makes calls fail, or does them wrong.
//
// QRTOOL_FAIL_CL=NAME:N:CODE   the Nth call of a function fails, for example clCreateBuffer:3:-4;
//                              N = 0: every call
// QRTOOL_FLIP_CL=NAME:N:BIT    the Nth clEnqueueWriteBuffer or clEnqueueReadBuffer copies one bit
//                              wrong
// QRTOOL_SKIP_CL=KERNEL        the kernel of this name never runs; buffers hold zeros at first, so
//                              that what the kernel leaves out is the same in every run
// QRTOOL_BUILD_CL=KERNEL       the program that holds the kernel of this name does not build
// QRTOOL_GROUP_CL=N            the device runs every kernel in work-groups of at most N work-items,
//                              and builds none for groups of its own size
// QRTOOL_END_CL=NAME:N         the Nth call ends the process as drivers do: N > 0 exit(1), N < 0
//                              abort() in call -N
// QRTOOL_NOTE_CL=NAME:FILE     FILE is made when the function is called
// QRTOOL_DEVICE_CL=WORD        every device is an accelerator (WORD = accelerator), or is not
//                              available (unavailable)
// QRTOOL_MEMORY_CL=BYTES       the device's memory: the buffers that exist there at one time have
//                              at most this size together
// QRTOOL_PEAK_CL=FILE          FILE gets the largest size that these buffers had together
#include <CL/cl_layer.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct _cl_icd_dispatch* target;
static struct _cl_icd_dispatch layer;
static char name[64], flipped[64], skipped[64], unbuilt[64], ending[64], device_word[64];
static char noted[64], note_file[1024];
static int nth, code, flipped_nth, ending_nth;
static long flipped_bit;
static size_t most_items, most_bytes;
static atomic_size_t bytes_in_use, peak_bytes;
static const char* peak_file;
static atomic_int calls, copies, calls_to_end;

static void end_if_asked(const char* function) {
  if (strcmp(function, ending) != 0) return;
  const int call = ++calls_to_end;
  if (call == ending_nth) exit(1);
  if (call == -ending_nth) abort();
}

static void note_if_asked(const char* function) {
  if (strcmp(function, noted) != 0) return;
  FILE* file = fopen(note_file, "w");
  if (file) fclose(file);
}

static int fails(const char* function) {
  end_if_asked(function);
  note_if_asked(function);
  if (strcmp(function, name) != 0) return 0;
  const int call = ++calls;
  return nth == 0 || call == nth;
}

/// Whether this copy of `size` bytes is the one with a wrong bit.
static int is_flipped(const char* function, size_t size) {
  return strcmp(function, flipped) == 0 && ++copies == flipped_nth &&
         (size_t)flipped_bit / 8 < size;
}

static void flip(void* data) { ((char*)data)[flipped_bit / 8] ^= (char)(1 << flipped_bit % 8); }

/// Whether the text of this program has the kernel that shall not build.
static int is_unbuilt(cl_program program) {
  size_t size = 0;
  if (unbuilt[0] == '\0' ||
      target->clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &size) != CL_SUCCESS)
    return 0;
  char* text = malloc(size + 1);
  target->clGetProgramInfo(program, CL_PROGRAM_SOURCE, size, text, NULL);
  text[size] = '\0';
  const int found = strstr(text, unbuilt) != NULL;
  free(text);
  return found;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint devices,
                                        const cl_device_id* list, const char* options,
                                        void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  if (fails("clBuildProgram")) return code;
  if (is_unbuilt(program)) return CL_BUILD_PROGRAM_FAILURE;
  return target->clBuildProgram(program, devices, list, options, notify, data);
}

static void CL_CALLBACK count_freed_bytes(cl_mem buffer, void* size) {
  (void)buffer;
  bytes_in_use -= (size_t)size;
}

// Written at once, because the process may end without its usual steps.
static void note_peak(void) {
  if (!peak_file || bytes_in_use <= peak_bytes) return;
  peak_bytes = bytes_in_use;
  FILE* file = fopen(peak_file, "w");
  if (!file) return;
  fprintf(file, "%zu\n", (size_t)peak_bytes);
  fclose(file);
}

/// Whether `size` more bytes are too many. A buffer that was released lives until the commands that
/// use it have ended, and PoCL tells of its end a moment later, from a thread of its own.
static int exceeds_memory(size_t size) {
  const struct timespec moment = {.tv_nsec = 5000000};
  for (int turn = 0; turn < 100 && bytes_in_use + size > most_bytes; ++turn)
    nanosleep(&moment, NULL);
  return bytes_in_use + size > most_bytes;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                                        void* host, cl_int* error) {
  const int is_counted = (most_bytes || peak_file) && !(flags & CL_MEM_ALLOC_HOST_PTR);
  const int is_over = is_counted && most_bytes && exceeds_memory(size);
  if (is_over || fails("clCreateBuffer")) {
    if (error) *error = is_over ? CL_MEM_OBJECT_ALLOCATION_FAILURE : code;
    return NULL;
  }
  const cl_mem_flags with_host = CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR;
  const int is_zeroed = skipped[0] != '\0' && !(flags & with_host);
  if (is_zeroed) {
    flags |= CL_MEM_COPY_HOST_PTR;
    host = calloc(size, 1);
  }
  const cl_mem buffer = target->clCreateBuffer(context, flags, size, host, error);
  if (is_zeroed) free(host);
  if (buffer && is_counted) {
    bytes_in_use += size;
    note_peak();
    target->clSetMemObjectDestructorCallback(buffer, count_freed_bytes, (void*)size);
  }
  return buffer;
}

static cl_context CL_API_CALL create_context(
    const cl_context_properties* properties, cl_uint devices, const cl_device_id* list,
    void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data, cl_int* error) {
  if (fails("clCreateContext")) {
    if (error) *error = code;
    return NULL;
  }
  return target->clCreateContext(properties, devices, list, notify, data, error);
}

static cl_int CL_API_CALL run_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                     const size_t* offset, const size_t* global,
                                     const size_t* local, cl_uint waits, const cl_event* wait_list,
                                     cl_event* event) {
  if (fails("clEnqueueNDRangeKernel")) return code;
  char kernel_name[64] = "";
  target->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(kernel_name), kernel_name, NULL);
  if (skipped[0] != '\0' && strcmp(kernel_name, skipped) == 0)
    return target->clEnqueueMarkerWithWaitList(queue, waits, wait_list, event);
  return target->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                        wait_list, event);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                      size_t offset, size_t size, void* host, cl_uint waits,
                                      const cl_event* wait_list, cl_event* event) {
  if (fails("clEnqueueReadBuffer")) return code;
  if (is_flipped("clEnqueueReadBuffer", size)) {
    const cl_int error = target->clEnqueueReadBuffer(queue, buffer, CL_TRUE, offset, size, host,
                                                     waits, wait_list, event);
    if (error == CL_SUCCESS) flip(host);
    return error;
  }
  return target->clEnqueueReadBuffer(queue, buffer, blocking, offset, size, host, waits, wait_list,
                                     event);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                       size_t offset, size_t size, const void* host, cl_uint waits,
                                       const cl_event* wait_list, cl_event* event) {
  if (fails("clEnqueueWriteBuffer")) return code;
  if (is_flipped("clEnqueueWriteBuffer", size)) {
    void* copy = malloc(size);  // the queue reads it at some later time
    memcpy(copy, host, size);
    flip(copy);
    host = copy;
  }
  return target->clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, host, waits, wait_list,
                                      event);
}

static cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, size_t size,
                                          void* value, size_t* size_needed) {
  const cl_int error = target->clGetDeviceInfo(device, what, size, value, size_needed);
  if (error != CL_SUCCESS || !value) return error;
  if (what == CL_DEVICE_TYPE && strcmp(device_word, "accelerator") == 0)
    *(cl_device_type*)value = CL_DEVICE_TYPE_ACCELERATOR;
  if (what == CL_DEVICE_AVAILABLE && strcmp(device_word, "unavailable") == 0)
    *(cl_bool*)value = CL_FALSE;
  return error;
}

static cl_int CL_API_CALL get_kernel_work_group_info(cl_kernel kernel, cl_device_id device,
                                                     cl_kernel_work_group_info what, size_t size,
                                                     void* value, size_t* size_needed) {
  const cl_int error =
      target->clGetKernelWorkGroupInfo(kernel, device, what, size, value, size_needed);
  if (most_items && what == CL_KERNEL_WORK_GROUP_SIZE && value) *(size_t*)value = most_items;
  if (most_items && what == CL_KERNEL_COMPILE_WORK_GROUP_SIZE && value) memset(value, 0, size);
  return error;
}

static void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking,
                                    cl_map_flags flags, size_t offset, size_t size, cl_uint waits,
                                    const cl_event* wait_list, cl_event* event, cl_int* error) {
  if (fails("clEnqueueMapBuffer")) {
    if (error) *error = code;
    return NULL;
  }
  return target->clEnqueueMapBuffer(queue, buffer, is_blocking, flags, offset, size, waits,
                                    wait_list, event, error);
}

static cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  if (fails("clWaitForEvents")) return code;
  return target->clWaitForEvents(count, events);
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* value,
                                               size_t* size_needed) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (value && size < sizeof(cl_layer_api_version)) return CL_INVALID_VALUE;
  if (value) *(cl_layer_api_version*)value = CL_LAYER_API_VERSION_100;
  if (size_needed) *size_needed = sizeof(cl_layer_api_version);
  return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries,
                                            const struct _cl_icd_dispatch* dispatch,
                                            cl_uint* entries_needed,
                                            const struct _cl_icd_dispatch** own) {
  const char* wish = getenv("QRTOOL_FAIL_CL");
  if (!wish || sscanf(wish, "%63[^:]:%d:%d", name, &nth, &code) != 3) name[0] = '\0';
  wish = getenv("QRTOOL_FLIP_CL");
  if (!wish || sscanf(wish, "%63[^:]:%d:%ld", flipped, &flipped_nth, &flipped_bit) != 3)
    flipped[0] = '\0';
  wish = getenv("QRTOOL_SKIP_CL");
  if (wish) snprintf(skipped, sizeof(skipped), "%s", wish);
  wish = getenv("QRTOOL_BUILD_CL");
  if (wish) snprintf(unbuilt, sizeof(unbuilt), "%s", wish);
  wish = getenv("QRTOOL_END_CL");
  if (!wish || sscanf(wish, "%63[^:]:%d", ending, &ending_nth) != 2) ending[0] = '\0';
  wish = getenv("QRTOOL_NOTE_CL");
  if (!wish || sscanf(wish, "%63[^:]:%1023s", noted, note_file) != 2) noted[0] = '\0';
  wish = getenv("QRTOOL_GROUP_CL");
  most_items = wish ? strtoul(wish, NULL, 10) : 0;
  wish = getenv("QRTOOL_MEMORY_CL");
  most_bytes = wish ? strtoull(wish, NULL, 10) : 0;
  peak_file = getenv("QRTOOL_PEAK_CL");
  wish = getenv("QRTOOL_DEVICE_CL");
  if (wish) snprintf(device_word, sizeof(device_word), "%s", wish);
  target = dispatch;
  memcpy(&layer, dispatch, entries * sizeof(void*));
  layer.clBuildProgram = build_program;
  layer.clCreateBuffer = create_buffer;
  layer.clCreateContext = create_context;
  layer.clEnqueueMapBuffer = map_buffer;
  layer.clEnqueueNDRangeKernel = run_kernel;
  layer.clEnqueueReadBuffer = read_buffer;
  layer.clEnqueueWriteBuffer = write_buffer;
  layer.clGetDeviceInfo = get_device_info;
  layer.clGetKernelWorkGroupInfo = get_kernel_work_group_info;
  layer.clWaitForEvents = wait_for_events;
  *own = &layer;
  *entries_needed = sizeof(layer) / sizeof(void*);
  return CL_SUCCESS;
}
