// SPDX-License-Identifier: Apache-2.0
// warp_machine.cpp: work-items as contexts that take turns, and the functions that kernels call.
#include "tests/gpu/warps/warp_machine.hpp"

#include <fmt/format.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

// The local memory of all kernels, which is a section of its own (tests/CMakeLists.txt).
extern "C" char __start_local_memory[], __stop_local_memory[];

namespace qrtool::test {
namespace {

constexpr int warp_size = 32;
constexpr std::size_t stack_bytes = std::size_t{4} << 20;
constexpr std::size_t most_turns = 10'000'000;

struct Copy {
  char* to;
  const char* from;
  int width, bytes;  // bytes that are copied; those after them, up to the width, become 0
};

struct Item {
  ucontext_t context;
  std::vector<char> stack;
  bool is_done = false;
  std::vector<Copy> open;                 // copies of the stage that is not committed
  std::vector<std::vector<Copy>> stages;  // those of which copies have not arrived
};

/// Where items wait until all are there.
struct Meeting {
  int present = 0;
  std::size_t number = 0;
};

/// What the lanes of a warp give to one another.
struct Exchange {
  Meeting meeting;
  std::array<int, warp_size> words;
  std::array<std::array<double, 3>, warp_size> numbers;
};

struct State {
  State(CopyTime when, unsigned seed) : copies(when), random(seed) {}

  CopyTime copies;
  std::mt19937 random;
  std::vector<std::pair<const char*, std::size_t>> readable;
  ucontext_t scheduler;
  std::vector<Item> items;
  std::vector<Exchange> warps;
  Meeting group_meeting;
  const std::function<void()>* kernel = nullptr;
  std::size_t group = 0;
  int current = 0;
  std::string error;

  Item& item() { return items[static_cast<std::size_t>(current)]; }
  Exchange& warp() { return warps[static_cast<std::size_t>(current / warp_size)]; }
  int lane() const { return current % warp_size; }
  int lanes() const { return std::min(warp_size, static_cast<int>(items.size())); }
};

State* machine = nullptr;

void give_turn() { swapcontext(&machine->item().context, &machine->scheduler); }

/// No exception may leave a context: the item stops for ever, and run() throws.
[[noreturn]] void stop(const std::string& why) {
  machine->error = why;
  for (;;) give_turn();
}

void meet(Meeting& meeting, int count) {
  const std::size_t number = meeting.number;
  if (++meeting.present == count) {
    meeting.present = 0;
    ++meeting.number;
  }
  while (meeting.number == number) give_turn();
}

void meet_warp() { meet(machine->warp().meeting, machine->lanes()); }

void arrive(const Copy& copy) {
  std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
  std::memset(copy.to + copy.bytes, 0, static_cast<std::size_t>(copy.width - copy.bytes));
}

bool may_be_read(const char* first, int bytes) {
  if (bytes == 0 || machine->readable.empty()) return true;
  return std::any_of(machine->readable.begin(), machine->readable.end(), [&](const auto& part) {
    return first >= part.first && first + bytes <= part.first + part.second;
  });
}

bool is_aligned(const void* place, int width) {
  return reinterpret_cast<std::uintptr_t>(place) % static_cast<std::uintptr_t>(width) == 0;
}

void run_item() {
  (*machine->kernel)();
  machine->item().is_done = true;
  give_turn();
}

void begin(Item& item) {
  item.stack.resize(stack_bytes);
  item.is_done = false;
  item.open.clear();
  item.stages.clear();
  getcontext(&item.context);
  item.context.uc_stack.ss_sp = item.stack.data();
  item.context.uc_stack.ss_size = item.stack.size();
  item.context.uc_link = nullptr;
  makecontext(&item.context, run_item, 0);
}

void run_group() {
  State& m = *machine;
  std::memset(__start_local_memory, 0xff,
              static_cast<std::size_t>(__stop_local_memory - __start_local_memory));
  m.warps.assign((m.items.size() + warp_size - 1) / warp_size, {});
  m.group_meeting = {};
  for (Item& item : m.items) begin(item);
  std::vector<int> order(m.items.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t turn = 0;; ++turn) {
    if (turn == most_turns) throw std::runtime_error("the work-items wait for one another");
    std::shuffle(order.begin(), order.end(), m.random);
    bool is_done = true;
    for (const int item : order) {
      m.current = item;
      if (m.item().is_done) continue;
      is_done = false;
      swapcontext(&m.scheduler, &m.item().context);
      if (!m.error.empty()) throw std::runtime_error(m.error);
    }
    if (is_done) return;
  }
}

}  // namespace

WarpMachine::WarpMachine(CopyTime copies, unsigned seed) { machine = new State(copies, seed); }

WarpMachine::~WarpMachine() {
  delete machine;
  machine = nullptr;
}

void WarpMachine::may_read(const void* first, std::size_t bytes) {
  machine->readable.emplace_back(static_cast<const char*>(first), bytes);
}

void WarpMachine::run(std::size_t groups, int group_size, const std::function<void()>& kernel) {
  machine->items = std::vector<Item>(static_cast<std::size_t>(group_size));
  machine->kernel = &kernel;
  for (machine->group = 0; machine->group < groups; ++machine->group) run_group();
}

}  // namespace qrtool::test

// ---- what nvidia.clh calls

using namespace qrtool::test;

extern "C" {

int machine_shuffle(int x, int from) {
  Exchange& warp = machine->warp();
  warp.words[static_cast<std::size_t>(machine->lane())] = x;
  meet_warp();
  const int result = warp.words[static_cast<std::size_t>(from % warp_size)];
  meet_warp();
  return result;
}

int machine_any(int x) {
  Exchange& warp = machine->warp();
  warp.words[static_cast<std::size_t>(machine->lane())] = x;
  meet_warp();
  int result = 0;
  for (int i = 0; i < machine->lanes(); ++i) result |= warp.words[static_cast<std::size_t>(i)];
  meet_warp();
  return result;
}

void machine_sync_warp() { meet_warp(); }

int machine_address(const void* to) {
  const char* place = static_cast<const char*>(to);
  if (place < __start_local_memory || place >= __stop_local_memory)
    stop("a copy to a place that is not in local memory");
  return static_cast<int>(place - __start_local_memory);
}

void machine_begin_copy(int address, const void* from, int width, int bytes) {
  const Copy copy{__start_local_memory + address, static_cast<const char*>(from), width, bytes};
  if (!is_aligned(copy.to, width) || (bytes > 0 && !is_aligned(from, width)))
    stop(fmt::format("a copy of {} bytes whose addresses are not multiples of it", width));
  if (!may_be_read(copy.from, bytes)) stop("a copy reads past the end of its buffer");
  if (machine->copies == CopyTime::at_once) {
    arrive(copy);
  } else {
    machine->item().open.push_back(copy);
  }
}

void machine_commit_copies() {
  Item& item = machine->item();
  item.stages.push_back(std::move(item.open));
  item.open.clear();
}

void machine_wait_for_stage(int later) {
  auto& stages = machine->item().stages;
  const auto arrived = std::max<std::ptrdiff_t>(0, std::ssize(stages) - later);
  for (std::ptrdiff_t i = 0; i < arrived; ++i)
    for (const Copy& copy : stages[static_cast<std::size_t>(i)]) arrive(copy);
  stages.erase(stages.begin(), stages.begin() + arrived);
}

// c (rows x 8) += l (rows x 4) r (4 x 8), in the layout that gpu/common/nvidia.clh states.
void machine_multiply(double* c, int rows, double above, double below, double r) {
  auto& numbers = machine->warp().numbers;
  const auto lane = static_cast<std::size_t>(machine->lane()), g = lane / 4, t = lane % 4;
  numbers[lane] = {above, below, r};
  meet_warp();
  for (std::size_t half = 0; half < static_cast<std::size_t>(rows) / 8; ++half)
    for (std::size_t col = 0; col < 2; ++col)
      for (std::size_t k = 0; k < 4; ++k)
        c[2 * half + col] = std::fma(numbers[4 * g + k][half], numbers[4 * (2 * t + col) + k][2],
                                     c[2 * half + col]);
  meet_warp();
}

}  // extern "C"

// ---- functions of OpenCL, under the names that clang gives them

#define OPENCL(name) asm(name)

std::size_t machine_local_id(unsigned) OPENCL("_Z12get_local_idj");
std::size_t machine_local_id(unsigned) { return static_cast<std::size_t>(machine->current); }
std::size_t machine_group_id(unsigned) OPENCL("_Z12get_group_idj");
std::size_t machine_group_id(unsigned) { return machine->group; }
void machine_barrier(unsigned) OPENCL("_Z7barrierj");
void machine_barrier(unsigned) {
  meet(machine->group_meeting, static_cast<int>(machine->items.size()));
}
double machine_fma(double, double, double) OPENCL("_Z3fmaddd");
double machine_fma(double x, double y, double z) { return std::fma(x, y, z); }
int machine_min(int, int) OPENCL("_Z3minii");
int machine_min(int x, int y) { return std::min(x, y); }
int machine_max(int, int) OPENCL("_Z3maxii");
int machine_max(int x, int y) { return std::max(x, y); }
float machine_fabs(float) OPENCL("_Z4fabsf");
float machine_fabs(float x) { return std::fabs(x); }
float machine_fmax(float, float) OPENCL("_Z4fmaxff");
float machine_fmax(float x, float y) { return std::fmax(x, y); }
double machine_sqrt(double) OPENCL("_Z4sqrtd");
double machine_sqrt(double x) { return std::sqrt(x); }
float machine_native_sqrt(float) OPENCL("_Z11native_sqrtf");
float machine_native_sqrt(float x) { return std::sqrt(x); }
int machine_ilogb(float) OPENCL("_Z5ilogbf");
int machine_ilogb(float x) { return std::ilogb(x); }
int machine_ilogb(double) OPENCL("_Z5ilogbd");
int machine_ilogb(double x) { return std::ilogb(x); }
