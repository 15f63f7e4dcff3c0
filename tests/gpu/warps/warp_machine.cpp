// SPDX-License-Identifier: Apache-2.0
// warp_machine.cpp: work-items as contexts that take turns, and the functions that kernels call.
#include "tests/gpu/warps/warp_machine.hpp"

#include <immintrin.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace qrtool::test {
namespace {

constexpr int warp_size = 32;
constexpr std::size_t stack_bytes = std::size_t{4} << 20;
constexpr double most_rounds_ahead = 2000;

struct Copy {
  char* to;
  const char* from;
  int width, bytes;  // `bytes` are copied; the others up to the width become 0
  CodePlace code;
};

/// Items wait here until all are there.
struct Meeting {
  int present = 0;
  std::uint32_t number = 0;
};

struct Item {
  ucontext_t start;
  jmp_buf place;  // where it goes on; jumps are faster than swaps of contexts
  bool is_started = false, is_done = false;
  const Meeting* waits_for = nullptr;
  std::uint32_t number = 0;                             // of that meeting
  std::uint32_t group_meetings = 0, warp_meetings = 0;  // that order accesses of memory
  std::vector<Copy> open;                               // copies of the stage that is not committed
  std::vector<std::vector<Copy>> stages;                // stages with copies that have not arrived
};

/// Holds what the lanes of a warp give to one another.
struct Exchange {
  Meeting meeting;
  std::array<int, warp_size> words;
  std::array<std::array<double, 3>, warp_size> numbers;
  std::array<std::array<unsigned, 6>, warp_size> halves;
  std::array<const unsigned short*, warp_size> rows;
};

/// A write that is a race unless it leaves the bytes as they are, which shows after it.
struct SecondWrite {
  Race race;
  const void* place;
  std::size_t bytes;
  std::array<char, 16> before;
  CodePlace code;
};

struct State {
  State(unsigned seed, LocalMemory memory) : random(seed), local(memory), log(memory) {}

  std::mt19937 random;
  LocalMemory local;
  LocalLog log;
  jmp_buf scheduler;
  std::vector<Item> items;
  std::vector<Exchange> warps;
  Meeting group_meeting;
  const std::function<void()>* kernel = nullptr;
  std::size_t group = 0, groups = 0;
  std::uint32_t launch = 0, group_meetings = 0;  // of all groups before this one
  int current = 0;
  std::string error;
  std::optional<SecondWrite> second_write;

  Item& item() { return items[static_cast<std::size_t>(current)]; }
  Exchange& warp() { return warps[static_cast<std::size_t>(current / warp_size)]; }
  int lane() const { return current % warp_size; }
  int lanes() const {
    return std::min(warp_size, static_cast<int>(items.size()) - current / warp_size * warp_size);
  }
  Accessor accessor() {
    return {current, current / warp_size, item().group_meetings, item().warp_meetings};
  }
};

State* machine = nullptr;

void give_turn() {
  if (_setjmp(machine->item().place) == 0) _longjmp(machine->scheduler, 1);
}

void take_turn(Item& item) {
  if (_setjmp(machine->scheduler) != 0) return;
  if (item.is_started) _longjmp(item.place, 1);
  item.is_started = true;
  setcontext(&item.start);
}

/// No exception may leave a context: the item stops for ever, and run() throws.
[[noreturn]] void stop(const std::string& why) {
  machine->error = why;
  for (;;) give_turn();
}

void judge_second_write();

void meet(Meeting& meeting, int count) {
  judge_second_write();
  const std::uint32_t number = meeting.number;
  if (++meeting.present == count) {
    meeting.present = 0;
    ++meeting.number;
    return;
  }
  Item& item = machine->item();
  item.waits_for = &meeting;
  item.number = number;
  give_turn();
}

void meet_warp() { meet(machine->warp().meeting, machine->lanes()); }

void report(const Race& race, const void* place, CodePlace code) {
  const bool is_local = machine->log.has(place);
  stop("a race of " + std::string(is_local ? "local" : "global") + " memory, " + race.what +
       "\n  " + text_of(code) + "\n  " + text_of(race.before));
}

void arrive(const Copy& copy) {
  std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
  std::memset(copy.to + copy.bytes, 0, static_cast<std::size_t>(copy.width - copy.bytes));
}

/// NaN in a place whose copy is under way: nobody may read the old entries or the new ones.
void forget(const Copy& copy) { std::memset(copy.to, 0xff, static_cast<std::size_t>(copy.width)); }

bool is_aligned(const void* place, int width) {
  return reinterpret_cast<std::uintptr_t>(place) % static_cast<std::uintptr_t>(width) == 0;
}

void run_item() {
  (*machine->kernel)();
  judge_second_write();
  machine->item().is_done = true;
  give_turn();
}

/// Stacks are kept for the next run.
char* stack_of(std::size_t item) {
  static std::vector<char*> stacks;
  while (stacks.size() <= item) {
    void* stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) throw std::runtime_error("no memory for stacks");
    stacks.push_back(static_cast<char*>(stack));
  }
  return stacks[item];
}

/// Stacks of different items end in different lines of the cache.
constexpr std::size_t apart_bytes = 17 * 64;

void begin(Item& item, std::size_t number) {
  item.is_started = item.is_done = false;
  item.waits_for = nullptr;
  item.group_meetings = machine->group_meetings;
  item.warp_meetings = 0;
  item.open.clear();
  item.stages.clear();
  getcontext(&item.start);
  item.start.uc_stack.ss_sp = stack_of(number);
  item.start.uc_stack.ss_size = stack_bytes - number * apart_bytes;
  item.start.uc_link = nullptr;
  makecontext(&item.start, run_item, 0);
}

bool is_ready(const Item& item) {
  return !item.is_done && (item.waits_for == nullptr || item.waits_for->number != item.number);
}

/// The work-items of a warp that do not wait.
void find_ready(int warp, std::vector<int>& ready) {
  ready.clear();
  const int end = std::min(static_cast<int>(machine->items.size()), (warp + 1) * warp_size);
  for (int i = warp * warp_size; i < end; ++i)
    if (is_ready(machine->items[static_cast<std::size_t>(i)])) ready.push_back(i);
}

/// One of the warps that can go on.
std::optional<int> choose_warp() {
  std::vector<int> warps;
  for (std::size_t i = 0; i < machine->items.size(); ++i) {
    const int warp = static_cast<int>(i) / warp_size;
    if ((warps.empty() || warps.back() != warp) && is_ready(machine->items[i]))
      warps.push_back(warp);
  }
  if (warps.empty()) return std::nullopt;
  return warps[std::uniform_int_distribution<std::size_t>(0, warps.size() - 1)(machine->random)];
}

void run_group() {
  State& m = *machine;
  if (m.local.first != nullptr)
    std::memset(m.local.first, 0xff, static_cast<std::size_t>(m.local.end - m.local.first));
  m.log.begin_group();
  m.warps.assign((m.items.size() + warp_size - 1) / warp_size, {});
  m.group_meeting = {};
  for (std::size_t i = 0; i < m.items.size(); ++i) begin(m.items[i], i);
  std::vector<int> ready;
  for (;;) {
    const std::optional<int> warp = choose_warp();
    if (!warp) break;
    const double share = std::uniform_real_distribution<>(0, 1)(m.random);
    for (double rounds = std::pow(most_rounds_ahead, share); rounds >= 1; --rounds) {
      find_ready(*warp, ready);
      if (ready.empty()) break;
      std::shuffle(ready.begin(), ready.end(), m.random);
      for (const int item : ready) {
        m.current = item;
        take_turn(m.item());
        if (!m.error.empty()) throw std::runtime_error(m.error);
      }
    }
  }
  for (const Item& item : m.items) {
    if (!item.is_done) throw std::runtime_error("the work-items wait for one another");
    m.group_meetings = std::max(m.group_meetings, item.group_meetings);
  }
  ++m.group_meetings;
}

/// After the work-item's last write.
void judge_second_write() {
  if (!machine->second_write) return;
  const SecondWrite write = *machine->second_write;
  machine->second_write.reset();
  if (std::memcmp(write.place, write.before.data(), write.bytes) != 0)
    report(write.race, write.place, write.code);
}

void log_access(Access access, const void* place, std::size_t bytes, CodePlace code) {
  judge_second_write();
  Race race{};
  if (machine->log.has(place)) {
    race = machine->log.add(machine->accessor(), access, place, bytes, code);
  } else if (global_memory().has(place)) {
    race = global_memory().add(machine->launch, static_cast<std::uint32_t>(machine->group), access,
                               place, bytes, code);
  }
  if (race.what == nullptr) return;
  SecondWrite write{race, place, bytes, {}, code};
  if (!race.are_writes || bytes > write.before.size()) report(race, place, code);
  std::memcpy(write.before.data(), place, bytes);
  machine->second_write = write;
}

}  // namespace

GlobalMemory& global_memory() {
  static GlobalMemory memory;
  return memory;
}

WarpMachine::WarpMachine(unsigned seed, LocalMemory local) { machine = new State(seed, local); }

WarpMachine::~WarpMachine() {
  delete machine;
  machine = nullptr;
}

void WarpMachine::run(std::size_t groups, int group_size, const std::function<void()>& kernel) {
  static std::uint32_t launches = 0;
  machine->launch = ++launches;
  machine->items = std::vector<Item>(static_cast<std::size_t>(group_size));
  machine->kernel = &kernel;
  machine->groups = groups;
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

int machine_agreed(int x) {
  Exchange& warp = machine->warp();
  warp.words[static_cast<std::size_t>(machine->lane())] = x;
  meet_warp();
  for (int i = 0; i < machine->lanes(); ++i)
    if (warp.words[static_cast<std::size_t>(i)] != x) stop("work-items of a warp do not agree");
  meet_warp();
  return x;
}

void machine_sync_warp() {
  meet_warp();
  ++machine->item().warp_meetings;
}

int machine_address(const void* to) {
  const char* place = static_cast<const char*>(to);
  const LocalMemory& local = machine->local;
  if (place < local.first || place >= local.end)
    stop("a copy to a place that is not in local memory");
  return static_cast<int>(place - local.first);
}

void machine_begin_copy(int address, const void* from, int width, int bytes) {
  const Copy copy{machine->local.first + address, static_cast<const char*>(from), width, bytes,
                  __builtin_return_address(0)};
  if (!is_aligned(copy.to, width) || (bytes > 0 && !is_aligned(from, width)))
    stop("a copy of " + std::to_string(width) + " bytes whose addresses are not multiples of it");
  const Race race = machine->log.begin_copy(machine->accessor(), copy.to,
                                            static_cast<std::size_t>(width), copy.code);
  if (race.what != nullptr) report(race, copy.to, copy.code);
  forget(copy);
  machine->item().open.push_back(copy);
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
    for (const Copy& copy : stages[static_cast<std::size_t>(i)]) {
      arrive(copy);
      machine->log.end_copy(machine->accessor(), copy.to, static_cast<std::size_t>(copy.width),
                            copy.code);
    }
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

unsigned short machine_half(float x) { return _cvtss_sh(x, 0); }
float machine_float(unsigned short half_bits) { return _cvtsh_ss(half_bits); }

// Halves are two in a word, the first in its lower bits.
unsigned machine_pack_halves(float x, float y) {
  return static_cast<unsigned>(_cvtss_sh(x, 0)) | static_cast<unsigned>(_cvtss_sh(y, 0)) << 16;
}

// Lane 8 s + i gives the address of row i of square s; lane l takes entries 2 (l % 4) and the next
// of row l / 4 of each square, or of its transpose.
void machine_load_halves(const unsigned short* from, unsigned* to, int is_transposed) {
  auto& rows = machine->warp().rows;
  const auto lane = static_cast<std::size_t>(machine->lane()), g = lane / 4, t = lane % 4;
  rows[lane] = from;
  log_access(Access::read, from, 8 * sizeof(*from), nullptr);
  meet_warp();
  for (std::size_t square = 0; square < 4; ++square) {
    const auto entry = [&](std::size_t row, std::size_t col) -> unsigned {
      return is_transposed != 0 ? rows[8 * square + col][row] : rows[8 * square + row][col];
    };
    to[square] = entry(g, 2 * t) | entry(g, 2 * t + 1) << 16;
  }
  meet_warp();
}

// c (16 x 8) += a (16 x 16) b (16 x 8)
void machine_multiply_halves(float* c, const unsigned* a, const unsigned* b) {
  auto& words = machine->warp().halves;
  const auto lane = static_cast<std::size_t>(machine->lane()), g = lane / 4, t = lane % 4;
  words[lane] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  meet_warp();
  const auto half = [&](std::size_t of, std::size_t word, std::size_t which) {
    return _cvtsh_ss(static_cast<unsigned short>(words[of][word] >> 16 * which));
  };
  for (std::size_t below = 0; below < 2; ++below)
    for (std::size_t right = 0; right < 2; ++right) {
      float sum = c[2 * below + right];
      for (std::size_t k = 0; k < 16; ++k)
        sum += half(4 * g + k % 8 / 2, below + k / 8 * 2, k % 2) *
               half(4 * (2 * t + right) + k % 8 / 2, 4 + k / 8, k % 2);
      c[2 * below + right] = sum;
    }
  meet_warp();
}

// ---- what kernels call before they access memory: the names of clang's -fsanitize=thread, which
// opencl.cpp changes to these

#define ACCESSES_OF(bytes)                                                \
  void machine_read##bytes(const void* place) {                           \
    log_access(Access::read, place, bytes, __builtin_return_address(0));  \
  }                                                                       \
  void machine_write##bytes(const void* place) {                          \
    log_access(Access::write, place, bytes, __builtin_return_address(0)); \
  }                                                                       \
  void machine_unaligned_read##bytes(const void* place) {                 \
    log_access(Access::read, place, bytes, __builtin_return_address(0));  \
  }                                                                       \
  void machine_unaligned_write##bytes(const void* place) {                \
    log_access(Access::write, place, bytes, __builtin_return_address(0)); \
  }
ACCESSES_OF(1)
ACCESSES_OF(2)
ACCESSES_OF(4)
ACCESSES_OF(8)
ACCESSES_OF(16)
void machine_init() {}
void machine_atomic(std::size_t place) {
  log_access(Access::atomic, reinterpret_cast<const void*>(place), sizeof(int),
             __builtin_return_address(0));
}
void* machine_memcpy(void* to, const void* from, std::size_t bytes) {
  log_access(Access::read, from, bytes, __builtin_return_address(0));
  log_access(Access::write, to, bytes, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* machine_memset(void* to, int x, std::size_t bytes) {
  log_access(Access::write, to, bytes, __builtin_return_address(0));
  return std::memset(to, x, bytes);
}

// ---- what builtins.cl calls

std::size_t machine_local_id() { return static_cast<std::size_t>(machine->current); }
std::size_t machine_group_id() { return machine->group; }
std::size_t machine_group_size() { return machine->items.size(); }
std::size_t machine_groups() { return machine->groups; }
void machine_barrier() {
  meet(machine->group_meeting, static_cast<int>(machine->items.size()));
  ++machine->item().group_meetings;
}

}  // extern "C"
