// SPDX-License-Identifier: Apache-2.0
// driver_test.cpp: a release of HDF5 that uses the buffer of a chunk finds one as large as the
// chunk. The calls of HDF5 are replaced below by ones that use all of the buffer.
#include "io/hdf5/structure/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "io/open/factors.hpp"
#include "tests/io/hdf5/reading.hpp"
#include "tests/io/hdf5/writing.hpp"

namespace {

bool uses_buffers = false;
int chunks_written = 0, chunks_read = 0;
constexpr char used = 7;

template <class Function>
Function* next_call(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Whether all bytes of the buffer, which this reads, are zero.
bool all_zero(const void* buffer, std::size_t bytes) {
  const auto* begin = static_cast<const char*>(buffer);
  return std::all_of(begin, begin + bytes, [](char c) { return c == 0; });
}

}  // namespace

extern "C" herr_t H5Dwrite_chunk(hid_t dataset, hid_t transfer, std::uint32_t filters,
                                 const hsize_t* offset, std::size_t bytes, const void* buffer) {
  if (uses_buffers) {
    ++chunks_written;
    EXPECT_TRUE(all_zero(buffer, bytes)) << "the buffer is smaller than the chunk";
  }
  return next_call<herr_t(hid_t, hid_t, std::uint32_t, const hsize_t*, std::size_t, const void*)>(
      "H5Dwrite_chunk")(dataset, transfer, filters, offset, bytes, buffer);
}

extern "C" herr_t H5Dread_chunk(hid_t dataset, hid_t transfer, const hsize_t* offset,
                                std::uint32_t* filters, void* buffer) {
  if (uses_buffers) {
    ++chunks_read;
    hsize_t bytes = 0;
    EXPECT_GE(H5Dget_chunk_storage_size(dataset, offset, &bytes), 0);
    std::fill_n(static_cast<char*>(buffer), bytes, used);
  }
  return next_call<herr_t(hid_t, hid_t, const hsize_t*, std::uint32_t*, void*)>("H5Dread_chunk")(
      dataset, transfer, offset, filters, buffer);
}

namespace qrtool::driver_test {
namespace {

class Hdf5DriverTest : public FileTest {
 protected:
  ~Hdf5DriverTest() override { uses_buffers = false; }
};

TEST_F(Hdf5DriverTest, HDF5GetsABufferForTheWholeChunk) {
  const OutputSpec spec = factors_spec({700}, 40, 20, Order::row, ElementType::float64);
  write_file<double>(spec, 100);
  const std::string untouched = read_text("o.h5");
  std::filesystem::remove("o.h5");
  uses_buffers = true;
  write_file<double>(spec, 100);
  EXPECT_GT(chunks_written, 4);
  EXPECT_EQ(read_text("o.h5"), untouched);
  EXPECT_EQ(read_all<double>(*open_factors("o.h5", Order::row).q),
            random_numbers<double>(700 * 40 * 20, 1));
  EXPECT_GT(chunks_read, 4);
}

}  // namespace
}  // namespace qrtool::driver_test
