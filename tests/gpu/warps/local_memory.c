// SPDX-License-Identifier: Apache-2.0
// local_memory.c: where the local memory of a program is, which opencl.cpp made a section of it.
extern char __start_local_memory[] __attribute__((weak, visibility("hidden")));
extern char __stop_local_memory[] __attribute__((weak, visibility("hidden")));
char* first_of_local_memory(void) { return __start_local_memory; }
char* end_of_local_memory(void) { return __stop_local_memory; }
