// SPDX-License-Identifier: Apache-2.0
// buffers_test.cpp: chunks are cut to fit the device's memory; no device is needed.
#include "gpu/pipeline/buffers.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "gpu/check/device_sums.hpp"
#include "gpu/gram/gram.hpp"
#include "gpu/gram/group/gram_group.hpp"
#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/registry.hpp"

namespace qrtool::buffers_test {
namespace {

const Problem problem{1000, 64, 64, ElementType::float32, Mode::reduced, Sign::positive};
const MatrixBytes bytes{{100, 100, 50}, {1000}, {250}};  // 250 bytes per set, 1250 once

Limits limits(std::size_t device_bytes, std::size_t max_allocation_bytes) {
  Limits l;
  l.device_bytes = device_bytes;
  l.max_allocation_bytes = max_allocation_bytes;
  return l;
}

TEST(CutChunk, KeepsToTheWantedSize) {
  const SubChunks cut = cut_chunk(problem, bytes, limits(1 << 30, 1 << 30), 1000, 25000);
  EXPECT_EQ(cut.matrices, 100);
  EXPECT_EQ(cut.sets, 3);
}

TEST(CutChunk, KeepsToTheLargestAllocation) {
  EXPECT_EQ(cut_chunk(problem, bytes, limits(1 << 30, 7999), 1000, 1 << 30).matrices, 7);
  EXPECT_EQ(cut_chunk(problem, bytes, limits(1 << 30, 1000), 1000, 1 << 30).matrices, 1);
}

TEST(CutChunk, KeepsToTheMemory) {
  EXPECT_EQ(cut_chunk(problem, bytes, limits(20000, 1 << 30), 1000, 1 << 30).matrices, 10);
  const SubChunks one = cut_chunk(problem, bytes, limits(1999, 1 << 30), 1000, 1 << 30);
  EXPECT_EQ(one.matrices, 1);
  EXPECT_EQ(one.sets, 2);
}

TEST(CutChunk, SlotsDoNotGrowWithTheBatch) {
  MatrixBytes with_slots = bytes;
  with_slots.slots = {5000, 2};
  EXPECT_EQ(cut_chunk(problem, with_slots, limits(30000, 1 << 30), 1000, 1 << 30).matrices, 10);
  EXPECT_EQ(with_slots.slots.total_bytes(1), 5000u);
  EXPECT_EQ(with_slots.slots.total_bytes(1000), 10000u);
  // With all slots not even one matrix would fit. One matrix needs one slot.
  EXPECT_EQ(cut_chunk(problem, with_slots, limits(11499, 1 << 30), 1000, 1 << 30).matrices, 1);
  EXPECT_EQ(cut_chunk(problem, with_slots, limits(6500, 1 << 30), 1000, 1 << 30).matrices, 1);
  EXPECT_THROW(cut_chunk(problem, with_slots, limits(6499, 1 << 30), 1000, 1 << 30), LimitError);
}

TEST(CutChunk, LeavesRoomForAFlaggedMatrixOnItsOwn) {
  MatrixBytes with_copies = bytes;
  with_copies.flagged = 4000;
  EXPECT_EQ(cut_chunk(problem, with_copies, limits(20000, 1 << 30), 1000, 1 << 30).matrices, 8);
  // A matrix that is alone in its sub-chunk needs no copies.
  EXPECT_EQ(cut_chunk(problem, with_copies, limits(4100, 1 << 30), 1000, 1 << 30).matrices, 1);
  EXPECT_EQ(cut_chunk(problem, with_copies, limits(1500, 1 << 30), 1000, 1 << 30).matrices, 1);
}

TEST(CutChunk, TakesNoMoreSetsThanSubChunks) {
  const SubChunks cut = cut_chunk(problem, bytes, limits(1 << 30, 1 << 30), 10, 1 << 30);
  EXPECT_EQ(cut.matrices, 10);
  EXPECT_EQ(cut.sets, 1);
}

TEST(CutChunk, SaysWhatOneMatrixNeeds) {
  for (const Limits& small : {limits(1499, 1 << 30), limits(1 << 30, 999)}) {
    try {
      cut_chunk(problem, bytes, small, 1000, 1 << 30);
      FAIL();
    } catch (const LimitError& error) {
      EXPECT_NE(std::string(error.what()).find("64x64"), std::string::npos);
      EXPECT_FALSE(error.hint().empty());
    }
  }
}

/// The workspace in a plan is the memory that the pool allocates.
TEST(CutChunk, WorkspaceIsWhatTheVariantStates) {
  for (const GpuVariant& variant : gpu_variants()) {
    for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r, Mode::raw}) {
      Problem p = problem;
      p.mode = mode;
      const MatrixBytes b = matrix_bytes(variant, p);
      std::size_t work = 0, io = 0;
      work += b.own_work();
      for (const std::size_t x : b.check) work += x;
      for (const std::size_t x : b.io) io += x;
      work += std::max(b.slots.total_bytes(p.count) / static_cast<std::size_t>(p.count),
                       b.shared_work());
      EXPECT_EQ(work, variant.plan.device_workspace_bytes(p)) << variant.plan.name;
      EXPECT_EQ(io, p.input_bytes() + p.output_bytes() + sizeof(int) + sizeof(DeviceErrors) +
                        SumLayout(p).bytes());
    }
  }
}

std::size_t bytes_of_batch(const GpuVariant& variant, const Problem& p) {
  const MatrixBytes b = matrix_bytes(variant, p);
  std::size_t per_matrix = 0;
  for (const auto* list : {&b.io, &b.check}) {
    for (const std::size_t x : *list) per_matrix += x;
  }
  return (per_matrix + b.own_work()) * static_cast<std::size_t>(p.count) + b.slots_buffer(p.count);
}

Limits gpu_with_matrix_units() {
  Limits gpu = limits(std::size_t{1} << 37, std::size_t{1} << 35);
  gpu.has_float64 = gpu.float64_products = true;
  gpu.shuffle_lanes = 32;
  gpu.local_bytes = 47 << 10;
  gpu.max_group = 1024;
  return gpu;
}

/// R alone takes no more memory than Q and R, although some variants form a first Q for it.
TEST(MatrixBytes, RAloneTakesNoMoreThanQAndR) {
  const Limits gpu = gpu_with_matrix_units();
  constexpr index_t shapes[][3] = {{15000, 64, 64}, {2000, 300, 64},  {2000, 256, 128},
                                   {32, 512, 512},  {1, 5000, 5000},  {8, 2048, 1000},
                                   {1, 700, 600},   {1, 1000000, 32}, {3, 100000, 128}};
  for (const GpuVariant& variant : gpu_variants()) {
    for (const auto& [count, m, n] : shapes) {
      for (const ElementType type : {ElementType::float32, ElementType::float64}) {
        const Problem r{count, m, n, type, Mode::r, Sign::positive};
        Problem q = r;
        q.mode = Mode::reduced;
        if (!variant.plan.takes(r, gpu).ok || !variant.plan.takes(q, gpu).ok) continue;
        EXPECT_LE(bytes_of_batch(variant, r), bytes_of_batch(variant, q))
            << variant.plan.name << ' ' << count << " of " << m << 'x' << n << ' ' << name_of(type);
      }
    }
  }
}

/// Where they pay, the routes by Gram matrices in float64 take a quarter more than A, Q and R at
/// most, with the memory for the matrices that go to reflectors.
TEST(MatrixBytes, GramInFloat64TakesAQuarterMoreThanAQAndR) {
  const Limits gpu = gpu_with_matrix_units();
  constexpr index_t shapes[][3] = {
      {15000, 64, 64}, {15000, 128, 64}, {2000, 256, 128}, {32, 512, 512},    {1, 512, 512},
      {1, 2048, 2048}, {1, 5000, 5000},  {1, 1000000, 32}, {1, 1000000, 128}, {1, 100000, 500}};
  for (const GpuVariant& variant : {gram_variant(), gram_group_variant(), gram_twice_variant()}) {
    for (const auto& [count, m, n] : shapes) {
      for (const Mode mode : {Mode::reduced, Mode::r}) {
        const Problem p{count, m, n, ElementType::float64, mode, Sign::positive};
        const Variant* const chosen = least_costly(p, opencl_variants(), gpu);
        if (chosen == nullptr || chosen->name != variant.plan.name) continue;
        const auto least = static_cast<double>(count * (2 * m * n + n * n)) * 8;
        EXPECT_LE(static_cast<double>(bytes_of_batch(variant, p)), 1.25 * least)
            << variant.plan.name << ' ' << count << " of " << m << 'x' << n << ' ' << name_of(mode);
      }
    }
  }
}

/// Flagged matrices are factored in the memory of the slots.
TEST(CutChunk, LeavesRoomForTheLargerOfSlotsAndFlaggedMatrices) {
  MatrixBytes shared = bytes;
  shared.slots = {5000, 2};
  shared.work = {1000, 750};
  shared.shared = 1;
  // 2000 bytes for a matrix in three sets, beside 10000 for the slots or 750 for each matrix.
  EXPECT_EQ(cut_chunk(problem, shared, limits(30000, 1 << 30), 1000, 1 << 30).matrices, 10);
  EXPECT_EQ(cut_chunk(problem, shared, limits(60000, 1 << 30), 1000, 1 << 30).matrices, 21);
  shared.work[1] = 7500;
  EXPECT_EQ(cut_chunk(problem, shared, limits(30000, 1 << 30), 1000, 1 << 30).matrices, 3);
  EXPECT_EQ(cut_chunk(problem, shared, limits(9000, 1 << 30), 1000, 1 << 30).matrices, 1);
  EXPECT_THROW(cut_chunk(problem, shared, limits(8999, 1 << 30), 1000, 1 << 30), LimitError);
}

}  // namespace
}  // namespace qrtool::buffers_test
