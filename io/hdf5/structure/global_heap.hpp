// SPDX-License-Identifier: Apache-2.0
// global_heap.hpp: global heaps, which hold the texts of attributes. HDF5 1.10 walks from object to
// object by the sizes that they state: for ever where one states 0, and beyond the end. It also
// allocates what an attribute claims as the length of its text before it looks at the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/hdf5/structure/local_heap.hpp"

namespace qrtool::hdf5 {

/// Whether these bytes begin like a global heap.
bool is_global_heap(std::span<const std::byte> bytes);

/// Returns the reason why the heap at `address` is damaged, or an empty text. All of its objects
/// are checked, however large it is. `read` reads the file.
std::string problem_of_global_heap(std::uint64_t address, const ReadBytes& read);

/// An object of a heap, as an attribute names it.
struct HeapObject {
  std::uint64_t length = 0;  // bytes of a text
  std::uint64_t heap = 0;    // the address of the heap; 0: there is no text
  std::uint64_t number = 0;  // in the heap
};

/// Reads the first `length` bytes of an object, which must have that many, to `text`. Returns the
/// reason why it cannot be read, or an empty text.
std::string read_heap_object(const HeapObject& object, const ReadBytes& read, std::string& text);

}  // namespace qrtool::hdf5
