// SPDX-License-Identifier: Apache-2.0
// chunk_writer_test.cpp: the chunks are those that HDF5 would write, to the bit.
#include "io/hdf5/write/chunk_writer.hpp"

#include <fcntl.h>

#include <chrono>
#include <future>
#include <memory>

#include "tests/io/file_test.hpp"
#include "tests/io/hdf5/fixture.hpp"

namespace qrtool::chunk_writer_test {
namespace {

using hdf5::ChunkWriter;
using hdf5::Dims;

class Hdf5ChunkWriterTest : public FileTest {};

/// c.h5 with the dataset A, open for a ChunkWriter.
struct Created {
  explicit Created(const hdf5::Layout& layout) {
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    hdf5::set_locating_driver(access);
    file = create_file("c.h5", H5P_DEFAULT, access);
    const Handle creation = creation_properties();
    H5Pset_chunk(creation, static_cast<int>(layout.chunk.size()), layout.chunk.data());
    H5Pset_fletcher32(creation);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    dataset = create_dataset(file, "A", H5T_IEEE_F32LE, layout.dims, creation);
  }
  Handle file, dataset;
};

/// Returns the stored bytes of every chunk of A, with its checksum.
std::vector<std::string> stored_chunks(const std::string& name, const hdf5::Layout& layout) {
  const Handle file(valid(H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)), H5Fclose);
  const Handle dataset(valid(H5Dopen2(file, "A", H5P_DEFAULT)), H5Dclose);
  const auto chunks = hdf5::Stretches::of(layout.dims, layout.chunk);
  std::vector<std::string> found;
  for (index_t i = 0; i < chunks->size(); ++i) {
    const Dims offset = chunks->offset(i);
    hsize_t bytes = 0;
    H5Dget_chunk_storage_size(dataset, offset.data(), &bytes);
    std::string chunk(bytes, '\0');
    std::uint32_t mask = 1;
    EXPECT_GE(H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &mask, chunk.data()), 0);
    EXPECT_EQ(mask, 0u);
    found.push_back(chunk);
  }
  return found;
}

TEST_F(Hdf5ChunkWriterTest, ChunksAreThoseOfHdf5) {
  const hdf5::Session session;
  for (const auto& [dims, chunk] :
       {std::pair{Dims{2, 7, 3}, Dims{1, 3, 3}}, std::pair{Dims{11}, Dims{4}},
        std::pair{Dims{8, 2}, Dims{4, 2}}, std::pair{Dims{2, 2, 5}, Dims{1, 1, 2}}}) {
    const hdf5::Layout layout{dims, chunk, 0};
    const Handle creation = creation_properties();
    H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    H5Pset_fletcher32(creation);
    write_numbers("library.h5", "A", H5T_IEEE_F32LE, dims, creation);
    const auto expected = stored_chunks("library.h5", layout);
    const std::vector<double> numbers = small_numbers(elements_of(dims));
    const std::vector<float> values(numbers.begin(), numbers.end());
    for (std::size_t step = 1; step <= values.size(); ++step) {
      {
        const Created created(layout);
        const int descriptor = open("c.h5", O_RDWR);
        ChunkWriter writer(created.dataset, descriptor, layout, 4, 2);
        ASSERT_TRUE(writer.allocate());
        for (std::size_t at = 0; at < values.size(); at += step) {
          EXPECT_EQ(writer.position(), static_cast<index_t>(at));
          const auto count = static_cast<index_t>(std::min(step, values.size() - at));
          writer.append(values.data() + at, count);
        }
        writer.finish();
        close(descriptor);
      }
      EXPECT_EQ(stored_chunks("c.h5", layout), expected) << step;
    }
  }
}

TEST_F(Hdf5ChunkWriterTest, GoesBackToAnyElement) {
  const hdf5::Session session;
  const hdf5::Layout layout{{11}, {4}, 0};
  const Handle creation = creation_properties();
  H5Pset_chunk(creation, 1, layout.chunk.data());
  H5Pset_fletcher32(creation);
  write_numbers("library.h5", "A", H5T_IEEE_F32LE, layout.dims, creation);
  const auto expected = stored_chunks("library.h5", layout);
  const std::vector<double> numbers = small_numbers(11);
  const std::vector<float> values(numbers.begin(), numbers.end());
  for (index_t from = 0; from <= 11; ++from) {
    for (index_t to = 0; to < from; ++to) {
      {
        const Created created(layout);
        const int descriptor = open("c.h5", O_RDWR);
        ChunkWriter writer(created.dataset, descriptor, layout, 4, 2);
        ASSERT_TRUE(writer.allocate());
        std::vector<float> first = values;
        std::fill(first.begin() + to, first.end(), -1.0F);  // to be written again
        writer.append(first.data(), from);
        writer.go_back(to);
        EXPECT_EQ(writer.position(), to);
        writer.append(values.data() + to, 11 - to);
        writer.finish();
        close(descriptor);
      }
      EXPECT_EQ(stored_chunks("c.h5", layout), expected) << from << " to " << to;
    }
  }
}

TEST_F(Hdf5ChunkWriterTest, AnUnfinishedChunkEndsInZeros) {
  const hdf5::Layout layout{{12}, {4}, 0};
  const std::vector<float> values{1, 2, 3, 4, 5};
  {
    const Created created(layout);
    const int descriptor = open("c.h5", O_RDWR);
    ChunkWriter writer(created.dataset, descriptor, layout, 4, 2);
    ASSERT_TRUE(writer.allocate());
    writer.append(values.data(), 5);
    writer.finish();
    close(descriptor);
  }
  const auto chunks = stored_chunks("c.h5", layout);
  const std::vector<float> second{5, 0, 0, 0};
  EXPECT_EQ(chunks[1].substr(0, 16), std::string(reinterpret_cast<const char*>(second.data()), 16));
  EXPECT_EQ(chunks[2], std::string(20, '\0')) << "zeros, whose checksum is 0";
}

TEST_F(Hdf5ChunkWriterTest, WritingDoesNotWaitForHdf5) {
  const hdf5::Layout layout{{12}, {4}, 0};
  const Created created(layout);
  const int descriptor = open("c.h5", O_RDWR);
  ChunkWriter writer(created.dataset, descriptor, layout, 4, 2);
  ASSERT_TRUE(writer.allocate());
  const std::vector<float> values(12);
  auto busy = std::make_unique<hdf5::Session>();
  auto done = std::async(std::launch::async, [&] { writer.append(values.data(), 12); });
  EXPECT_EQ(done.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  busy.reset();
  done.get();
  close(descriptor);
}

TEST_F(Hdf5ChunkWriterTest, AFailedWriteIsAnError) {
  const hdf5::Layout layout{{12}, {4}, 0};
  const Created created(layout);
  const int only_for_reading = open("c.h5", O_RDONLY);
  ChunkWriter writer(created.dataset, only_for_reading, layout, 4, 2);
  ASSERT_TRUE(writer.allocate());
  const std::vector<float> values(12);
  writer.append(values.data(), 3);  // nothing to write yet
  EXPECT_THROW(writer.append(values.data(), 9), hdf5::FailedWrite);
  close(only_for_reading);
}

}  // namespace
}  // namespace qrtool::chunk_writer_test
