// SPDX-License-Identifier: Apache-2.0
// pack.cpp: which words are copied.
#include "gpu/pipeline/pack.hpp"

#include <cstdint>
#include <string>

namespace qrtool {
namespace {

/// Any number; one work-item copies one word.
constexpr int group_size = 256;

bool is_aligned(const DeviceMatrices& matrices, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(matrices.data) % bytes == 0;
}

EntryStrides strides_of(const DeviceMatrices& matrices) {
  return {matrices.stride, matrices.row_stride, matrices.col_stride};
}

}  // namespace

bool is_in_place(const DeviceMatrices& m) {
  return (m.cols <= 1 || m.col_stride == 1) && (m.rows <= 1 || m.row_stride == m.cols) &&
         (m.count <= 1 || m.stride == m.rows * m.cols) && is_aligned(m, 16);
}

DeviceMatrices packed_in(const Buffer& memory, const DeviceMatrices& shape) {
  return {memory.handle(),        shape.count, shape.rows, shape.cols, shape.cols, 1,
          shape.rows * shape.cols};
}

DeviceMatrices slice(const DeviceMatrices& all, index_t first, index_t count, std::size_t element) {
  DeviceMatrices some = all;
  some.count = count;
  if (all.data != nullptr)
    some.data =
        static_cast<std::byte*>(all.data) + first * all.stride * static_cast<index_t>(element);
  return some;
}

void enqueue_copy(FactorEngine& engine, ElementType type, const DeviceMatrices& from,
                  const DeviceMatrices& to) {
  const std::size_t element = size_of(type);
  const bool is_whole = is_aligned(from, element) && is_aligned(to, element);
  const std::size_t word = is_whole ? element : size_of(real_of(type));
  const index_t parts = is_whole ? 1 : parts_in(type), words = from.entries() * parts;
  const CopyShape shape{strides_of(from), strides_of(to), words, from.rows, from.cols};
  Launcher launch = engine.launcher({"gpu/pipeline/pack.cl",
                                     {{"COPIED_WORD", word == 4   ? "uint"
                                                      : word == 8 ? "ulong"
                                                                  : "uint4"},
                                      {"WORDS_OF_ENTRY", std::to_string(parts)}},
                                     "copies between strides"});
  launch("pack_matrices", ceil_divide(words, group_size), group_size,
         Buffer::of_caller(from.data, 0), Buffer::of_caller(to.data, 0), shape);
}

}  // namespace qrtool
