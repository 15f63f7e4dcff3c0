// SPDX-License-Identifier: Apache-2.0
// state.hpp: a stand-in for CUDA's driver library (libcuda.so.1), for tests on machines without a
// GPU. Its devices are the OpenCL devices of PoCL, so that kernels run and have right results; its
// images are PoCL's binaries. Commands run as late as they may: when the host waits. Addresses of
// device memory are of no use to the host, and are not used a second time. A program that breaks a
// rule of CUDA, or that accesses memory without an order among streams, ends with one line on the
// standard error and abort().
//
// With LD_LIBRARY_PATH=FOLDER QRTOOL_PRETEND=cuda a program finds the library in a folder. With
// OPENCL_LAYERS=FOLDER/libcuda.so.1 as well, PoCL builds much less (layer.cpp).
//
// QRTOOL_STAND_IN, a list of words with commas between them, or qrtool_stand_in(words):
//   fail=SYMBOL:K[:CODE]  the K-th call of a function returns CODE (999) and does nothing; K+: all
//                         from the K-th on
//   dead=K                the K-th launch does not run, and after it calls return 700
//   devices=N             the number of devices (1)
//   memory=BYTES          of all device memory that exists at one time
//   capture               every stream is being recorded
//   no-pools              devices have no memory pools
//   strict                cuMemFree and cuMemFreeHost do not wait for the device, though they do
//                         today: memory that commands still use is an error
//   leaks                 memory that exists at the end of the process is an error
//   log=FILE              FILE gets a line for each call: function, stream, result, kernel
#pragma once

#include <CL/cl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/host/cuda_api.hpp"

extern "C" {
#define QRTOOL_CUDA_DECLARED(name, symbol, parameters) qrtool::cuda::Result symbol parameters;
namespace qrtool::cuda {
QRTOOL_CUDA_FUNCTIONS(QRTOOL_CUDA_DECLARED)
}
#undef QRTOOL_CUDA_DECLARED
}

namespace qrtool::cuda {

inline constexpr Result context_is_lost = 700;

template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}
template <class T>
std::uintptr_t number_of(T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// Ends the process with the words of a rule that the current call has broken.
[[noreturn]] void broken(const std::string& rule);

/// How many commands of each stream are known to be done: a vector clock.
class Clock {
 public:
  std::uint64_t of(std::size_t stream) const { return stream < done_.size() ? done_[stream] : 0; }
  std::uint64_t tick(std::size_t stream);
  void join(const Clock& other);

 private:
  std::vector<std::uint64_t> done_;
};

/// When a command was done.
struct Moment {
  bool is_done = false;
  std::chrono::steady_clock::time_point time;
};

struct Context_ {
  Device device = 0;
  Stream legacy = nullptr;
  Clock of_destroyed;  // blocking streams
};

struct Stream_ {
  Context context = nullptr;
  std::size_t number = 0;
  bool is_blocking = true, is_legacy = false, is_recording = false;
  Clock clock;
};

struct Event_ {
  Context context = nullptr;
  bool has_time = true, is_recorded = false;
  Clock clock;
  std::shared_ptr<Moment> moment;
};

/// PoCL tells of the arguments of kernels only if an option of the build asks for it, and builds
/// kernels with and without it apart. A program from a binary is both.
struct Code {
  cl_program program = nullptr, with_arguments = nullptr;
};

struct Module_ {
  Context context = nullptr;
  Code code;
  std::map<std::string, Function> functions;
};

/// PoCL does not know the size of a parameter that is a struct.
inline constexpr std::size_t most_bytes_of_struct = 512;

struct Parameter {
  bool is_pointer = false, is_read_only = false;
  std::size_t bytes = 0;  // of a struct most_bytes_of_struct
};

struct Function_ {
  Module module = nullptr;
  std::string name;
  cl_kernel kernel = nullptr;
  std::vector<Parameter> parameters;
};

struct Link_ {
  Context context = nullptr;
  std::string image;
  char* log = nullptr;
  std::size_t log_bytes = 0;
};

struct Pool_ {
  Device device = 0;
};

struct Access {
  std::size_t begin, end;  // bytes of the memory
  std::size_t stream;
  std::uint64_t time;
  bool writes;
};

struct Memory {
  enum class Kind { device, pool, managed, host };
  Kind kind = Kind::device;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  std::byte* place = nullptr;  // where the numbers are
  Device device = 0;
  Context context = nullptr;  // null for memory of a pool
  std::vector<Access> accesses;
};

/// A part of a memory.
struct Part {
  Memory* memory = nullptr;
  std::size_t offset = 0;

  std::byte* place() const { return memory->place + offset; }
};

struct Failure {
  std::string symbol;
  std::uint64_t from = 1, to = 1;
  Result code = 999;
};

struct Words {
  std::vector<Failure> failures;
  std::uint64_t dead = 0;
  int devices = 1;
  std::size_t memory = ~std::size_t{0};
  bool captures = false, has_pools = true, is_strict = false, reports_leaks = false;
  std::string log;
};

/// What a thread has: the contexts that are current, the last one on top, and its own streams.
struct Stack {
  std::vector<Context> list;
  int pushes = 0;  // less the pops
  std::map<Context, Stream> streams;
};

struct State {
  std::mutex mutex;
  Words words;
  std::map<std::string, std::uint64_t> calls;
  std::uint64_t launches = 0;
  bool is_initialised = false, is_dead = false;
  int process = 0;
  Clock host;
  std::vector<std::function<void()>> commands;
  std::map<std::uintptr_t, Memory> memories;
  std::size_t device_bytes = 0;
  std::map<Device, Context> primary;
  // What exists. The objects stay when their handles are no longer valid.
  std::set<Context> contexts;
  std::set<Stream> streams;
  std::set<Event> events;
  std::set<Module> modules;
  std::set<Function> functions;
  std::set<Link> links;
  std::set<Pool> pools;
  std::size_t made_streams = 0;
  std::mutex stacks_mutex;
  std::list<Stack> stacks;  // of all threads
  std::string note;         // for the line of the current call in the log
};

/// Never destroyed, since calls may come while the process ends.
State& state();
/// Takes the words of the environment, or others.
void read_words(const char* words);

Stack& stack();
/// The current context; breaks the rule that there is one.
Context current();

/// What a function needs before its body runs.
enum class Needs { nothing, start, context };

/// Runs the body of the function `symbol` by itself among all threads, unless it is to fail.
Result called(const char* symbol, Needs needs, const std::function<Result()>& body,
              std::optional<Stream> stream = {});

Device known_device(Device device);
/// A further word for the line of the current call in the log.
void note(const std::string& word);
template <class Handle>
Handle known(const std::set<Handle>& list, Handle handle, const char* what) {
  if (!list.contains(handle)) broken(std::string(what) + " is unknown, or was destroyed");
  return handle;
}

/// The stream that a handle means in the current context: null, 1 and 2 are the usual ones.
Stream stream_of(Stream handle);
Stream make_stream(Context context, bool is_blocking);

// Order (order.cpp).

/// A new command of the stream; what the stream waits for comes before it. Returns its time.
std::uint64_t begin_command(Stream stream);
/// The host has waited for what `clock` knows.
void host_waits(const Clock& clock);
/// All that a wait for the stream waits for.
Clock clock_of(Stream stream);
/// The last command of the stream accesses bytes of a memory: breaks the rule that the accesses
/// before it which it may not overlap are done.
void access(Memory& memory, std::size_t begin, std::size_t end, Stream stream, bool writes);
/// The same for the host, which frees the memory.
void access_by_host(Memory& memory);
void wait_for_stream(Stream stream);
/// Waits for all streams of a device.
void wait_for_device(Device device);

// Memory (memory.cpp).

/// Null where there is too little memory.
Memory* make_memory(Memory::Kind kind, std::size_t bytes, Context context, Device device);
/// The memory with bytes [pointer, pointer + bytes), which may be used in this context.
Part part_of(std::uintptr_t pointer, std::size_t bytes, Context context);
/// Null if there is none.
Memory* memory_at(std::uintptr_t pointer);
/// Forgets the memory; its bytes are gone after the commands so far.
void forget(Memory& memory);

// Execution (machine.cpp).

/// Runs all commands that wait.
void run_commands();
int count_of_devices();
/// What stands for a binary: the source of a program and the options of its build.
std::string source_image(const std::string& text, const std::string& options);
/// A program of the device from what a compiler has given, or from a source, made once; null if it
/// is none.
Code program_of(Device device, const std::string& binary, std::string* why);
/// An image from what a compiler has given.
std::string image_of(const std::string& binary);
/// The bytes of an image in memory; empty if it is none.
std::string image_at(const void* image);
/// Null if there is none of this name.
Function function_of(Module module, const char* name);
std::size_t most_threads_of(Device device, cl_kernel kernel);

struct Grid {
  std::size_t groups[3], threads[3];
};
struct Value {
  std::vector<std::byte> bytes;  // of an argument by value
  std::byte* place = nullptr;    // of an argument that is a pointer
  std::size_t bytes_there = 0;
};
void run_kernel(const Function_& function, const Grid& grid, const std::vector<Value>& values);

}  // namespace qrtool::cuda
