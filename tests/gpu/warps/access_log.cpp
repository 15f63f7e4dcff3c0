// SPDX-License-Identifier: Apache-2.0
// access_log.cpp: cells of memory, and the two accesses of a race.
#include "tests/gpu/warps/access_log.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

namespace qrtool::test {
namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 36;
constexpr std::size_t page = 4096;

/// Addresses without memory, which comes when they are written.
void* reserve(std::size_t bytes) {
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) throw std::bad_alloc();
  return place;
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

// ---- local memory

LocalLog::LocalLog(LocalMemory local)
    : local_(local), cells_(static_cast<std::size_t>(local.end - local.first) / cell_bytes + 1) {}

bool LocalLog::is_unordered(const Touch& before, const Accessor& by) {
  if (before.item == none || before.item == by.item || before.group_meetings != by.group_meetings)
    return false;
  return before.warp != by.warp || before.warp_meetings == by.warp_meetings;
}

/// Keeps of the readers since the last barrier one, or all those of a warp since it met, or all.
void LocalLog::note_read(Touch& read, const Accessor& by, CodePlace code) {
  const bool is_first = read.item == none || read.group_meetings != by.group_meetings;
  if (!is_first && read.warp != by.warp) {
    read.warp = read.item = several;
    return;
  }
  const bool is_alone = is_first || read.warp_meetings != by.warp_meetings || read.item == by.item;
  read = {by.group_meetings, by.warp_meetings, is_alone ? by.item : several, by.warp, code};
}

template <class Body>
Race LocalLog::for_cells(const void* place, std::size_t bytes, Body body) {
  const auto first = static_cast<std::size_t>(static_cast<const char*>(place) - local_.first);
  for (std::size_t at = first / cell_bytes; at <= (first + bytes - 1) / cell_bytes; ++at) {
    const Race race = body(cells_[at]);
    if (race.what != nullptr) return race;
  }
  return {};
}

Race LocalLog::add(const Accessor& by, Access access, const void* place, std::size_t bytes,
                   CodePlace code) {
  return for_cells(place, bytes, [&](Cell& cell) -> Race {
    if (cell.copied_in == group_)
      return {"the place of a copy that is not waited for", cell.written.code};
    const bool are_atomic = access == Access::atomic && cell.is_atomic;
    if (access == Access::read) {
      if (is_unordered(cell.written, by)) return {"read and written before", cell.written.code};
      note_read(cell.read, by, code);
      return {};
    }
    if (is_unordered(cell.read, by)) return {"written and read before", cell.read.code};
    if (!are_atomic && is_unordered(cell.written, by))
      return {"written twice", cell.written.code, /*are_writes=*/true};
    cell.written = {by.group_meetings, by.warp_meetings, by.item, by.warp, code};
    cell.is_atomic = access == Access::atomic;
    return {};
  });
}

Race LocalLog::begin_copy(const Accessor& by, const void* place, std::size_t bytes,
                          CodePlace code) {
  const Race race = add(by, Access::write, place, bytes, code);
  if (race.what != nullptr) return race;
  return for_cells(place, bytes, [&](Cell& cell) -> Race {
    cell.copied_in = group_;
    return {};
  });
}

void LocalLog::end_copy(const Accessor& by, const void* place, std::size_t bytes, CodePlace code) {
  for_cells(place, bytes, [&](Cell& cell) -> Race {
    cell.copied_in = 0;
    cell.written = {by.group_meetings, by.warp_meetings, by.item, by.warp, code};
    return {};
  });
}

// ---- global memory

GlobalMemory::GlobalMemory()
    : first_(static_cast<char*>(reserve(arena_bytes))),
      cells_(static_cast<Cell*>(reserve(arena_bytes / sizeof(float) * sizeof(Cell)))) {}

char* GlobalMemory::take(std::size_t bytes) {
  if (taken_ + whole_pages(bytes) > arena_bytes) throw std::bad_alloc();
  char* const taken = first_ + taken_;
  taken_ += whole_pages(bytes);
  std::memset(taken, 0xff, bytes);
  return taken;
}

void GlobalMemory::give_back(char* first, std::size_t bytes) {
  madvise(first, whole_pages(bytes), MADV_DONTNEED);
  Cell* const cells = cells_ + static_cast<std::size_t>(first - first_) / sizeof(float);
  // Whole pages of cells are given back, since a page of floats has as many bytes as cells divide.
  madvise(cells, whole_pages(bytes) / sizeof(float) * sizeof(Cell), MADV_DONTNEED);
}

Race GlobalMemory::add(std::uint32_t launch, std::uint32_t group, Access access, const void* place,
                       std::size_t bytes, CodePlace code) {
  const auto first = static_cast<std::size_t>(static_cast<const char*>(place) - first_);
  const auto is_other = [&](const Touch& before) {
    return before.launch == launch && before.group != group;
  };
  for (std::size_t at = first / sizeof(float); at <= (first + bytes - 1) / sizeof(float); ++at) {
    Cell& cell = cells_[at];
    const bool are_atomic = access == Access::atomic && cell.is_atomic != 0;
    if (access == Access::read) {
      if (is_other(cell.written)) return {"read, and written by another group", cell.written.code};
      cell.read = {launch, is_other(cell.read) ? several : group, code};
      continue;
    }
    if (is_other(cell.read)) return {"written, and read by another group", cell.read.code};
    if (!are_atomic && is_other(cell.written))
      return {"written by two groups", cell.written.code, /*are_writes=*/true};
    cell.written = {launch, group, code};
    cell.is_atomic = access == Access::atomic ? 1 : 0;
  }
  return {};
}

// ---- places in the code

namespace {

/// Returns the text of a line: FILE:NUMBER, then anything.
std::string line_at(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return place;
  std::ifstream file(place.substr(0, colon));
  std::string text;
  for (int left = std::atoi(place.c_str() + colon + 1); left > 0; --left) std::getline(file, text);
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace

std::string text_of(CodePlace code) {
  Dl_info info{};
  if (code == nullptr || dladdr(code, &info) == 0) return "?";
  char command[1024], line[1024];
  const auto offset = static_cast<const char*>(code) - static_cast<const char*>(info.dli_fbase) - 1;
  std::snprintf(command, sizeof(command), "addr2line -i -e %s %#tx 2>/dev/null", info.dli_fname,
                offset);
  std::string text = info.dli_sname != nullptr ? info.dli_sname : "?";
  FILE* const pipe = popen(command, "r");
  if (pipe == nullptr) return text;
  while (std::fgets(line, sizeof(line), pipe) != nullptr) text += "\n    " + line_at(line);
  pclose(pipe);
  return text;
}

}  // namespace qrtool::test
