// SPDX-License-Identifier: Apache-2.0
// chunk_cache.cpp: computes which chunks two calls of read share.
#include "io/hdf5/values/chunk_cache.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace qrtool::hdf5 {
namespace {

/// Returns the bytes of the chunks that two calls of read in a row share: the chunks across the
/// faster dimensions if whole matrices or rows are read, and the chunks across the stored rows if
/// columns are read.
double shared_chunk_bytes(const Dataset& dataset, std::span<const hsize_t> chunk) {
  const std::size_t rank = chunk.size();
  const auto chunks_across = [&](std::size_t d) {
    return static_cast<double>((dataset.dims[d] + chunk[d] - 1) / chunk[d]);
  };
  auto chunk_bytes = static_cast<double>(dataset.stored_bytes);
  for (const hsize_t extent : chunk) chunk_bytes *= static_cast<double>(extent);
  double across = 1;
  const auto first = std::find_if(chunk.begin(), chunk.end(), [](hsize_t c) { return c > 1; });
  for (auto d = static_cast<std::size_t>(first - chunk.begin()) + 1; d < rank; ++d) {
    across *= chunks_across(d);
  }
  if (rank >= 2) across = std::max(across, chunks_across(rank - 2));
  return chunk_bytes * across;
}

}  // namespace

std::size_t enlarge_cache(const InputFile& file, Dataset& dataset, std::size_t memory_bytes) {
  constexpr double usual_bytes = 1 << 20;
  const double most_bytes =
      std::clamp<double>(static_cast<double>(memory_bytes) / 4, usual_bytes, 64 << 20);
  constexpr std::size_t slots =
      12421;  // a prime, far larger than the number of chunks in the cache
  const Handle creation(H5Dget_create_plist(dataset.handle), H5Pclose);
  const auto rank = static_cast<int>(dataset.dims.size());
  std::vector<hsize_t> chunk(dataset.dims.size());
  if (H5Pget_layout(creation) != H5D_CHUNKED) return 0;
  if (H5Pget_chunk(creation, rank, chunk.data()) != rank) return 0;
  const auto bytes = static_cast<std::size_t>(
      std::clamp(shared_chunk_bytes(dataset, chunk), usual_bytes, most_bytes));
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access, slots, bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  dataset.handle.close();  // a dataset that is still open keeps its properties
  dataset.handle = Handle(H5Dopen2(file.handle, dataset.path.c_str(), access), H5Dclose);
  return bytes;
}

}  // namespace qrtool::hdf5
