// SPDX-License-Identifier: Apache-2.0
// access_log.hpp: who last wrote and read each address that work-items share, so that a race is
// found whichever of its orders runs.
//
// Local memory. Work-items of a group are ordered by its barriers, and those of a warp also by
// sync_lanes; nothing else orders them, shuffles, votes and products of a warp included. Two
// accesses of an address, one of them a write, are a race where no such meeting lies between them.
// Atomic functions do not race with one another, and neither do two writes of the same bytes, which
// the caller has to find out. A copy that runs during the arithmetic writes from
// its begin to the wait for it: until then nobody may touch its place.
//
// Global memory. Nothing orders the groups of a launch. What copies read is not looked at: they may
// take more than is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace qrtool::test {

/// The local memory of a program. The pointers are null where it has none.
struct LocalMemory {
  char *first, *end;
};

/// A work-item when it accesses memory: its number in the group, its warp, and the meetings that it
/// has passed, of the group (whose numbers go on from group to group) and of its warp.
struct Accessor {
  int item, warp;
  std::uint32_t group_meetings, warp_meetings;
};

enum class Access { read, write, atomic };

/// A place in the text of kernels, as an address in the code.
using CodePlace = const void*;

struct Race {
  const char* what;  // null: there is none
  CodePlace before;  // the earlier one of the two accesses
  bool are_writes = false;
};

class LocalLog {
 public:
  explicit LocalLog(LocalMemory local);
  bool has(const void* place) const { return place >= local_.first && place < local_.end; }
  /// Copies of the group before are forgotten: one that nobody waited for does no harm at its end.
  void begin_group() { ++group_; }
  Race add(const Accessor& by, Access access, const void* place, std::size_t bytes, CodePlace code);
  Race begin_copy(const Accessor& by, const void* place, std::size_t bytes, CodePlace code);
  void end_copy(const Accessor& by, const void* place, std::size_t bytes, CodePlace code);

 private:
  /// Halves are the smallest numbers in local memory.
  static constexpr std::size_t cell_bytes = 2;
  static constexpr int several = -2, none = -1;
  struct Touch {
    std::uint32_t group_meetings = 0, warp_meetings = 0;
    int item = none, warp = none;
    CodePlace code = nullptr;
  };
  struct Cell {
    Touch written, read;
    bool is_atomic = false;
    std::uint32_t copied_in = 0;  // the group in which a copy is under way
  };
  static bool is_unordered(const Touch& before, const Accessor& by);
  static void note_read(Touch& read, const Accessor& by, CodePlace code);
  template <class Body>
  Race for_cells(const void* place, std::size_t bytes, Body body);

  LocalMemory local_;
  std::uint32_t group_ = 0;
  std::vector<Cell> cells_;
};

/// Holds the memory of buffers in an arena of addresses. No two buffers ever share an address.
class GlobalMemory {
 public:
  GlobalMemory();
  /// Memory that is all ones. Errors: std::bad_alloc.
  char* take(std::size_t bytes);
  void give_back(char* first, std::size_t bytes);
  bool has(const void* place) const { return place >= first_ && place < first_ + taken_; }
  /// launch: a number from 1 on.
  Race add(std::uint32_t launch, std::uint32_t group, Access access, const void* place,
           std::size_t bytes, CodePlace code);

 private:
  struct Touch {
    std::uint32_t launch = 0, group = 0;  // several groups: most_groups
    CodePlace code = nullptr;
  };
  struct Cell {
    Touch written, read;
    std::uint64_t is_atomic = 0;
  };
  static constexpr std::uint32_t several = 0xffffffff;

  char* first_;
  Cell* cells_;
  std::size_t taken_ = 0;
};

/// Returns the kernel and the text of a place in its code. The function that was inlined last comes
/// first.
std::string text_of(CodePlace code);

}  // namespace qrtool::test
